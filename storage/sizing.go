package storage

import "github.com/dgraph-io/badger/v4"

// sizing is how much of everything Badger may hold, and from it what free
// space its work can need at once.
type sizing struct {
	memTable  int64 // bytes of one memory table
	memTables int64 // full ones that wait to be written out, besides the active and the one being written
	l0        int64 // tables of level 0 that start a compaction
	l0Stall   int64 // tables of level 0 that hold writing up
}

const (
	minMemTable = 1 << 20
	maxMemTable = 64 << 20

	// defaultMemTable: half of it takes half the memory, twice of it saves a
	// tenth of the work in compactions.
	defaultMemTable = 8 << 20

	// On a file system below smallSystem everything is kept as small as it
	// can be, so that most of the room is for packets.
	smallSystem = 2 << 30
)

// sizingFor chooses for a file system of total bytes; memTable is the
// caller's wish, or 0.
func sizingFor(total, memTable int64) sizing {
	s := sizing{memTable: memTable, memTables: 1, l0: 5, l0Stall: 15}
	if memTable == 0 {
		s.memTable = min(max(total/256, minMemTable), defaultMemTable)
	}
	if total < smallSystem {
		s.memTables, s.l0, s.l0Stall = 1, 2, 4
	}
	return s
}

func (s sizing) options(path string) badger.Options {
	opt := badgerOptions(path, s.memTable)
	opt.NumMemtables = int(s.memTables)
	opt.NumLevelZeroTables = int(s.l0)
	opt.NumLevelZeroTablesStall = int(s.l0Stall)
	return opt
}

// oneTable is the most that a full memory table takes as a log or as a table:
// one batch, at most 15 % of it, may go over, and an index comes on top.
func (s sizing) oneTable() int64 { return s.memTable + s.memTable/4 }

// background is the most that Badger writes by itself before it frees
// anything: every full memory table as a table, and compactions of all the
// lsm bytes there are, up to what one round takes of a large tree.
func (s sizing) background(lsm int64) int64 {
	const manifest = 1 << 20
	return (s.memTables+2)*s.oneTable() + min(lsm, 64*s.memTable) + manifest
}

// draining is what pops may write before a compaction gives room back: every
// log, and level 0 up to the stall.
func (s sizing) draining() int64 {
	return (s.memTables + 2 + s.l0Stall) * s.oneTable()
}

// reserve is the size of the reserve file.
func (s sizing) reserve(total int64) int64 {
	return (s.memTables+2)*s.oneTable() + min(total/8, 4*s.memTable)
}

// floor is the least that must be free without the reserve before a batch.
func (s sizing) floor() int64 { return s.memTable + s.memTable/2 }
