// Package redis drives a server of the Redis protocol from outside, as the clients of rfq and
// pressure do. Every test runs against Holdfast and, where it is installed, against redis-server,
// which proves that the test tells what Redis does. The map:
//
//	server_test.go     the servers, and what all tests share
//	conn_test.go       a client that sees every byte
//	rfq_test.go        all versions of rfq's clients, and what they do together
//	pressure_test.go   pressure's clients in C, Python and Go, and what they do together
//	waiting_test.go    blocked pops: who is served, when, and what waits behind them
//	linear_test.go     histories of concurrent clients, which one order must explain
//	linearwork_test.go the same of workers, who push, claim, end and cancel
//	replies_test.go    replies that these clients depend on, to the byte
//	killed_test.go     a server that is killed, and one queue over several protocols
//	work_test.go       the work queue by redis-cli and redis-py, over servers and workers that are killed
//	worker_test.go     the workers that users copy, in Python and JavaScript
//	stranger_test.go   who speaks something else, stops half-way or never reads
//	goredis_test.go    the same conventions by go-redis
//	programs_test.go   programs that are installed: redis-cli, redis-benchmark, Python, Node; what taskiq sends
//
// ZKMQ.md and PRESSURE.md show how two older queues are done with the work queue. Their sessions
// are typed into redis-cli.
package redis
