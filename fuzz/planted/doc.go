// Package planted plants bugs in the engine below the broker, and in how queues are shared out and
// limited. Each has a judge, the test that must find it: tests that never failed prove nothing. A
// bug is a few words of the source that are replaced. Its function is there twice then, as it is
// and with the bug, in a copy of the file that only these builds have: the source has no hooks. One
// build has all bugs, and the variable PLANTED of the environment turns one on.
//
// The judge of most bugs of the store is its simulation, with a seed that finds the bug. A change
// of what seeds draw, or of which calls the store makes, may need another one. -planted.seeds 100
// plays so many in place of the seed that is named, and -v says which is the first that finds the
// bug. The map:
//
//	bug.go           Bug, and the overlay that has the go command build with bugs
//	source.go        a file with bugs
//	judge.go         Build and Judge: the tests with all bugs, and what each finds
//	bugs_test.go     the bugs
//	server_test.go   those of the server, which -planted.server has judged: of names, lists, those
//	                 who wait, ids, filters and bounds. serverwork_test.go has others
//	planted_test.go  the runs, and what cannot be planted
package planted
