// Package planted plants bugs in the engine below the broker, and in how queues are shared out and
// limited. Each has a judge, the test that must find it: tests that never failed prove nothing. A
// bug is a few words of the source that are replaced. Its function is there twice then, as it is
// and with the bug, in a copy of the file that only these builds have: the source has no hooks. One
// build has all bugs, and the variable PLANTED of the environment turns one on. The map:
//
//	bug.go           Bug, and the overlay that has the go command build with bugs
//	source.go        a file with bugs
//	judge.go         Build and Judge: the tests with all bugs, and what each finds
//	bugs_test.go     the bugs
//	planted_test.go  the runs, and what cannot be planted
package planted
