// Package fuzz holds the fuzz targets. They compare frames, stored records, and a server of
// barbershop behind a real socket with simple models. Inputs that once failed stay under
// testdata/fuzz, and go test runs them. The folders below run whole servers: crash kills them,
// fills their disk and makes their system calls fail, soak loads one for hours, wire speaks to them
// byte by byte, redis uses clients of Redis, redissuite Redis's own tests. planted shows that the
// tests of the engine find bugs. The map:
//
//	frames_test.go      FuzzRequests and FuzzReplies: the frames of pinpriq
//	records_test.go     FuzzRecord and FuzzPacket: what storage writes of a packet
//	barbershop_test.go  FuzzBoard: a server of barbershop against a model
//	memstore_test.go    the store in memory that it uses
package fuzz
