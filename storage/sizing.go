package storage

import "github.com/dgraph-io/badger/v4"

// sizing is how much of everything Badger may hold, and from it what free space its work can need
// at once.
type sizing struct {
	memTable  int64 // bytes of one memory table
	memTables int64 // full ones that wait to be written out, besides the active and the one being written
	l0        int64 // tables of level 0 that start a compaction
	l0Stall   int64 // tables of level 0 that hold writing up
}

const (
	minMemTable = 1 << 20
	maxMemTable = 64 << 20

	// On a file system below smallSystem everything is kept as small as it can be, so that most of
	// the room is for packets; from largeSystem on room is spent to save work.
	smallSystem = 2 << 30
	largeSystem = 32 << 30

	// A memory table of 16 MiB saves a tenth of the work, and costs some 60 MB of resident memory:
	// its copies, and twice its size for writing it out.
	defaultMemTable = 8 << 20

	// Compactions are most of the work of a push. Gathering 20 tables before one saves a third of a
	// push's processor time against Badger's default of 5 (16 connections, 64 deep, 2 M packets).
	mediumL0  = 5
	largeL0   = 20
	baseLevel = 8 // the smallest level below level 0, in memory tables
)

// sizingFor chooses for a file system of total bytes; memTable is the caller's wish, or 0.
func sizingFor(total, memTable int64) sizing {
	s := sizing{
		memTable:  min(max(total/256, minMemTable), defaultMemTable),
		memTables: 1,
		l0:        largeL0,
		l0Stall:   2 * largeL0,
	}
	if total < largeSystem {
		s.l0, s.l0Stall = mediumL0, 3*mediumL0
	}
	if total < smallSystem {
		s.l0, s.l0Stall = 2, 4
	}
	if memTable != 0 {
		s.memTable = memTable
	}
	return s
}

func (s sizing) options(path string) badger.Options {
	opt := badgerOptions(path, s.memTable)
	opt.NumMemtables = int(s.memTables)
	opt.NumLevelZeroTables = int(s.l0)
	opt.NumLevelZeroTablesStall = int(s.l0Stall)
	opt.BaseLevelSize = baseLevel * s.memTable
	return opt
}

// oneTable is the most that a full memory table takes as a log or as a table: one batch, at most 15
// % of it, may go over, and an index comes on top.
func (s sizing) oneTable() int64 { return s.memTable + s.memTable/4 }

// background is the most that Badger writes by itself before it frees anything: every full memory
// table as a table, and compactions of all the lsm bytes there are, up to what one round takes of a
// large tree.
func (s sizing) background(lsm int64) int64 {
	const manifest = 1 << 20
	return (s.memTables+2)*s.oneTable() + s.compaction(lsm) + manifest
}

// compaction is the most that compactions write before they free anything.
func (s sizing) compaction(lsm int64) int64 { return min(lsm, 64*s.memTable) }

// draining is what pops may write before a compaction gives room back: every log, and level 0 up to
// the stall.
func (s sizing) draining() int64 {
	return (s.memTables + 2 + s.l0Stall) * s.oneTable()
}

// allowance is the dead bytes that there may be however little is live: every log and memory table,
// and level 0 up to where a compaction of it has ended that began when it was due.
func (s sizing) allowance() int64 {
	return (s.memTables + 2 + s.l0 + s.l0/2) * s.oneTable()
}

// reserve is the size of the reserve file.
func (s sizing) reserve(total int64) int64 {
	return (s.memTables+2)*s.oneTable() + min(total/8, 4*s.memTable)
}

// floor is the least that must be free without the reserve: below it the reserve is given up.
func (s sizing) floor() int64 { return 2 * s.oneTable() }
