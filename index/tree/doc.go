// Package tree has what the index keeps its packets in: a B+tree for what has an order, and slabs
// of numbered slots for all else. It knows no packets, only their numbers.
//
// # Files
//
// In layers: few use what a file declares that is listed after them.
//
//	slab.go  numbered slots in pages
//	node.go  a place, and a node of the tree
//	tree.go  the B+tree
//	end.go   in which order an end takes places
//	walk.go  over the tree in that order
//	heap.go  what comes first, of items that know their places
package tree
