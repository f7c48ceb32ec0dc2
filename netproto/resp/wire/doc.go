// Package wire is the Redis protocol as bytes: no session, no command, no broker. Its files:
//
//	parser.go  requests
//	reply.go   heads of replies, and texts
//	number.go  numbers as Redis reads and writes them
package wire
