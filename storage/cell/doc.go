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
//	log.go       Log: a node's way to the log; which calls are tried again
//	owner.go     who owns, and claims next; what nodes say of themselves; Status of the cell
//	claim.go     Term: a claim, until it ends for good; Append, behind the fence
//	follow.go    Follow: one batch after the other
//	cut.go       what the tables of each node have; when the log is cut, and what holds it
//	member.go    Member: the etcd of a node, in this process
//	memberset.go nodes come, get a vote, and go
//	memberlog.go what etcd says, and would end the process with; reads that it waits for
//	alone.go     Alone: what a member's folder has, without the others
package cell
