// Package cell keeps the log of a cell: nodes that hold the same queues, of which one owns them.
// What is committed, in what order, and who owns is decided by etcd, whose keys are:
//
//	owner                            who owns; has the lease of the claim
//	handover                         the node that claims next; lives for some seconds
//	head                             the last batch, its fence, the sum of its content
//	cut                              the batch up to which the log was cut
//	j/<batch, 16 hex>/<part, 4 hex>  the content of a batch
//	floor/<node>                     the batch up to which a node's tables have everything
//	copy/<name>                      the batch that a copy has; holds the cut, has the node's lease
//	node/<node>                      what a node says of itself; has the node's lease
//
// An absent batch is 0. At each revision of etcd all parts of the batches behind cut, up to head,
// are there.
//
//	log.go          Log: a node's way to the log; which calls are tried again
//	owner.go        Owner: who owns; what nodes say of themselves
//	claim.go        Term: a claim, until it ends for good; whether it is held
//	handover.go     HandOver: a claim ends, and a certain node claims next
//	append.go       Append: the next batch, in parts, behind the fence
//	follow.go       Follow: one batch after the other
//	status.go       Status: what the cell is at one moment
//	cut.go          what the tables of each node have, and when the log is cut
//	hold.go         Hold: the log is not cut behind what a copy has
//	member.go       Member: the etcd of a node, in this process
//	memberconfig.go which etcd that is
//	memberset.go    nodes come, get a vote, and go
//	memberlog.go    etcd's own log, and what etcd would end the process with
//	memberread.go   reads that etcd waits for when it stops
//	alone.go        Alone: what a member's folder has, without the others
package cell
