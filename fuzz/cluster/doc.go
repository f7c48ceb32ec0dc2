// Package cluster has three nodes of a cell lose processes, machines, links, disks and the time
// under a load, and judges what clients were told. What was acknowledged is there, what was popped
// or acknowledged as done does not come back, and all nodes hold the same in the end. The map:
//
//	cell_test.go     the nodes, each a process
//	load_test.go     the clients
//	judge_test.go    what they were told, and whether it can be
//	faults_test.go   the faults
//	compose_test.go  faults of any kinds at once, for as long as -composed says
//	machines_test.go nodes in namespaces, and the faults of links and disks (root)
//	cluster_test.go  the runs: two minutes of any faults, or -cycles of all
//	planted_test.go  bugs that must be found
//	clients_test.go  the Go client, what each node tells, several cells
//	takeover_test.go what goes on at the next owner, and what one that follows tells
//	sentinel_test.go clients in their Sentinel mode
//	workers_test.go  workers in Python, Node and Go, and redis-benchmark
//	make_test.go     make cluster
package cluster
