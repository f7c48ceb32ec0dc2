// Package words declares the words of the Redis protocol, each once. Whoever reads, writes or
// explains them goes by its tables. It imports nothing of the project.
//
// Read command.go first: the commands, their arguments and replies. The tables of COMMANDS.md are
// made of it by "make words".
package words
