// Package planted plants one bug at a time in the engine below the broker, and in how queues are
// shared out and limited. It shows that the tests of these find each. Tests that have never failed
// prove nothing. A bug is a few words of the source that are replaced when the tests are built, so
// the source itself has no hooks. The map:
//
//	bug.go           Bug: how one is planted, and what finds it
//	bugs_test.go     the bugs
//	planted_test.go  the runs
package planted
