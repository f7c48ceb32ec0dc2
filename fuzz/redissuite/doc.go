// Package redissuite runs Redis's own tests from outside against a server. It fetches their source,
// of which nothing is kept here. Its map:
//
//	suite_test.go       the run: fetch, adapt, run, report
//	testdata/skip.txt   tests that do not apply, with reasons
//	testdata/adapt.tcl  what the suite asks of a server that only Redis has
package redissuite
