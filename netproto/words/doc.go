// Package words declares the words of the Redis protocol, each once. Whoever reads, writes or
// explains them goes by its tables. It imports nothing of the project.
//
// Read command.go first: the commands, their arguments and replies. option.go has the options of
// the work queue with their limits, field.go what is told of a packet and a queue, and
// trouble.go what of that needs somebody. "make words" makes the tables of COMMANDS.md.
package words
