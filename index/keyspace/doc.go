// Package keyspace is the directory of names: which names of which database a queue, a string or a
// hash has, and when that expires. It holds strings and hashes themselves. Like index it is pure:
// it reads no clock, starts no goroutine and does no input or output.
//
//	directory.go  Directory and Entry: names, by database
//	expiry.go     when they expire
//	fields.go     the fields of a hash
//	slots.go      numbered places, by which scans go
package keyspace
