package planted

// bug is one change of the source. What it replaces stands there exactly once.
type bug struct {
	name     string
	file     string // below storage
	old, new string
	tests    string // which tests of its package are run; "" is all, and then those of storage
}

// bugs are all that are planted. Left out is what this engine cannot do: it writes one record at a
// time, and the names of segments say nothing.
func bugs() []bug {
	return []bug{
		// The journal.
		{"no sync of a record", "journal/journal.go",
			"err == nil && !j.opts.Weak", "err == nil && false", ""},
		{"a reply before the sync", "journal/journal.go",
			"err = j.syncer.datasync(f)", "go j.syncer.datasync(f)", "FailingCalls"},
		{"records that are not synced say that they are", "journal/journal.go",
			"if !j.opts.Weak {\n\t\th.Flags", "if true {\n\t\th.Flags", ""},
		{"the same salt again", "journal/segment.go",
			"rand.Read(h.Salt[:])", "rand.Read(nil)", ""},
		{"the sum before is not compared", "journal/replay.go",
			" || h.Previous != r.end.Sum", "", ""},
		{"a hole is the end", "journal/replay.go",
			"h.Flags&flagOrdered == 0 && !r.AcceptLoss", "!r.AcceptLoss", ""},
		{"a torn rest is damage", "journal/replay.go",
			"if !ok || h.Batch <= r.end.Batch {", "if !ok && h.Magic == recordMagic {\n\t\t\treturn false, r.pass(\"torn\")\n\t\t}\n\t\tif !ok || h.Batch <= r.end.Batch {", ""},
		{"a segment is given up too early", "journal/files.go",
			"j.begun[0].Number < below", "j.begun[0].Number <= below", ""},
		{"what is not in tables is given up", "flusher.go",
			"s.journal.Release(w.upto)", "s.journal.Release(journal.Mark{Segment: w.upto.Segment + 1})", ""},
		{"segments in any order", "journal/journal.go",
			"cmp.Compare(a.Number, b.Number)", "cmp.Compare(b.Salt[0], a.Salt[0])", ""},
		{"old segments stay when a new one begins", "journal/journal.go",
			"return j.Clear()", "return nil", ""},
		{"the anchor is ahead of the record", "apply.go",
			"place, upto, err := s.journal.Append(content)", "_ = s.anchor.write(s.mark(next.Batch))\n\tplace, upto, err := s.journal.Append(content)", ""},
		{"the folder of the journal is not synced", "journal/files.go",
			"if err := j.unknown(j.folder.Sync()); err != nil {", "if err := j.unknown(nil); err != nil {", ""},
		{"a failed sync is tried again", "journal/journal.go",
			"j.failed.Store(true)", "j.failed.Store(false)", ""},
		{"the journal goes although tables could not be made", "store.go",
			"err == nil {\n\t\terr = s.journal.Clear()", "true {\n\t\terr = s.journal.Clear()", "CloseThatCannotWriteOut"},

		{"a segment that a backup reads is used again", "journal/files.go",
			" && s.holds == 0", "", ""},
		{"a backup lacks the segment where the tables end", "files.go",
			"segment.Number >= f.view", "segment.Number > f.view", "FilesAreThose"},
		{"a backup takes a damaged journal", "files.go",
			"err = damaged(f.segments.Check(floorMark(f.view.List)))", "err = nil", "FilesOf"},

		// What is pending.
		{"over is taken for new", "pending.go",
			"e.kind != entryNew || w.holes", "e.kind == entryDelete || w.holes", ""},
		{"a deletion of what is below is forgotten", "pending.go",
			"s.deleted && !s.below", "s.deleted && (there || !s.below)", ""},
		{"a batch that was not written is pending", "apply.go",
			"if errors.Is(err, journal.ErrFull) {", "if errors.Is(err, journal.ErrFull) {\n\t\t_ = s.layers.take(place, upto, &content)", ""},
		{"a batch after the freeze goes into the frozen window", "layers.go",
			"l.open, l.at = newWindow(w.upto), time.Time{}", "l.at = time.Time{}", ""},
		{"a window is dropped before its tables are there", "flusher.go",
			"list := s.tables.List()\n\tif list.Floor", "s.layers.mu.Lock()\n\tw.entries = nil\n\ts.layers.mu.Unlock()\n\tlist := s.tables.List()\n\tif list.Floor", ""},
		{"the tables are asked before what is pending", "read.go",
			"if known {\n\t\t\tr.value", "view := r.layers.tables.View()\n\t\tdefer view.Close()\n\t\tif e, ok, err := view.Get(key); ok {\n\t\t\treturn e.Value, ok, err\n\t\t}\n\t\tif known {\n\t\t\tr.value", ""},
		{"a frozen window is not asked", "layers.go",
			"i >= 0 && !known", "i > 0 && !known", ""},
		{"the oldest frozen window is asked first", "layers.go",
			"for i := len(l.frozen) - 1; i >= 0 && !known; i-- {", "for i := 0; i < len(l.frozen) && !known; i++ {", ""},
		{"an expiry is not kept", "pending.go",
			"s.expires = uint32(e.expires)", "s.expires = 0", ""},
		{"what comes behind a hole is new", "pending.go",
			"e.kind != entryNew || w.holes", "e.kind != entryNew", ""},

		// Tables.
		{"one entry is left out", "flusher.go",
			"for _, key := range w.sorted(control) {", "for _, key := range w.sorted(control)[:max(1, len(w.entries)+len(w.deleted))] {", ""},
		{"deletions of packets are left out", "pending.go",
			"append(make([]pendingKey, 0, len(w.entries)+len(w.deleted)+1), more), w.deleted...)", "make([]pendingKey, 0, len(w.entries)+1), more)", ""},
		{"a payload of its own is left out", "flusher.go",
			"s, there := w.entries[key]\n", "s, there := w.entries[key]\n\t\t\tif key[1] == 'b' {\n\t\t\t\tcontinue\n\t\t\t}\n", ""},
		{"a table is not read back", "tables/build.go",
			"err = b.readBack(path, t)", "data, _ := os.ReadFile(path)\n\t\tt.Sum = xxhash.Sum64(data)\n\t\tvar f *file\n\t\tif f, err = openFile(path, t); err == nil {\n\t\t\tb.built = append(b.built, f)\n\t\t}", ""},
		{"an entry does not get into its table", "tables/build.go",
			"v := y.ValueStruct{Value: e.Value, ExpiresAt: e.Expires}\n", "v := y.ValueStruct{Value: e.Value, ExpiresAt: e.Expires}\n\tif len(e.Value) == 17 {\n\t\treturn\n\t}\n", ""},
		{"a table is not synced", "tables/build.go",
			"return file.Sync()", "return nil", ""},
		{"the folder of the tables is not synced", "tables/set.go",
			"f.path = to\n\t}\n\treturn unknown(s.folder.Sync())", "f.path = to\n\t}\n\treturn nil", ""},
		{"the floor is one too high", "flusher.go",
			"tables.Floor{Batch: w.upto.Batch,", "tables.Floor{Batch: w.upto.Batch + 1,", ""},
		{"the version is not raised", "flusher.go",
			"s.tables.List().Window + 1", "max(s.tables.List().Window, 1)", ""},

		// Batches that stay as a whole.
		{"they are in force before they are kept", "start.go",
			"s.tables.Hold()\n", "", "Kept"},
		{"they stand in the journal before they are kept", "start.go",
			"filepath.Join(s.folder.name(buildName), journalName)", "s.folder.name(journalName)", "Kept"},
		{"what they replace goes before they are kept", "tables/set.go",
			"if s.folder != nil || filepath.Dir(f.path) == s.build {", "if true {", "Held"},

		// Merges.
		{"two adoptions at once", "tables/set.go",
			"(a Adoption) (err error) {\n\ts.adopting.Lock()\n\tdefer s.adopting.Unlock()\n", "(a Adoption) (err error) {\n", ""},
		{"a level is passed over", "tables/merge.go",
			"n > 1 {\n\t\t\tbreak", "n > 1 {\n\t\t\tcontinue", ""},
		{"level 1 is taken alone", "tables/merge.go",
			"level, taken = n, taken+size[n]", "level, taken = n, taken+size[n]\n\t\tif n == 1 && !all {\n\t\t\tbreak\n\t\t}", ""},
		{"what is above goes before the last output", "tables/merge.go",
			"if bytes.Compare(last, m.last) <= 0 && (low == nil || bytes.Compare(last, low) < 0) {", "if len(last) > 0 {", ""},
		{"what is above goes beside what it hides", "tables/merge.go",
			"(low == nil || bytes.Compare(last, low) < 0) {", "true {", ""},
		{"an older version is kept", "tables/merge.go",
			"return y.CompareKeys(a.it.Key(), b.it.Key())", "return cmp.Or(bytes.Compare(y.ParseKey(a.it.Key()), y.ParseKey(b.it.Key())), -y.CompareKeys(a.it.Key(), b.it.Key()))", ""},
		{"a deletion goes above a deeper level", "tables/merge.go",
			"superseded := bytes.Equal(e.Key, m.last)", "superseded := bytes.Equal(e.Key, m.last) || e.Deleted", ""},
		{"an expired entry goes above a deeper level", "tables/merge.go",
			"superseded := bytes.Equal(e.Key, m.last)", "superseded := bytes.Equal(e.Key, m.last) || e.Expires != 0 && e.Expires <= m.o.Now", ""},
		{"what was flushed meanwhile goes", "tables/merge.go",
			"drop = append(drop, m.base[:passed]...)", "v := m.s.View()\n\tdefer v.Close()\n\tdrop = append(drop, m.base[:passed]...)\n\tfor _, f := range v.files {\n\t\tif f.Level == 0 && !slices.Contains(m.upper, f) && !slices.Contains(drop, f) {\n\t\t\tdrop = append(drop, f)\n\t\t}\n\t}", ""},
		{"a table that a step ends in goes whole", "tables/merge.go",
			"m.older.valid() && m.older.seen > 1 {", "false && m.older.valid() {", ""},
		{"a merge that read too little is adopted", "tables/table.go",
			"if r.seen != f.Entries {", "if false {", ""},
		{"the output of a merge has its versions raised", "tables/merge.go",
			"size += int64(len(e.Key)", "e.Version = m.s.List().Window + 1\n\t\t\t\tsize += int64(len(e.Key)", ""},

		// A start.
		{"tables come in force before the tally agrees", "scan.go",
			"if mismatch == nil {\n\t\terr = s.begin()", "if true {\n\t\terr = s.begin()", ""},
		{"what is pending is not merged", "start.go",
			"if w.upto == w.from {", "if true {", ""},
		{"tables without a name stay", "tables/set.go",
			"for _, path := range strays {", "for _, path := range strays[:0] {", ""},
		{"a migration forgets the redo record", "migrate.go",
			"if m.redo != nil {", "if false {", "Older|Migrat"},
		{"the tally is not compared", "tally.go",
			"fits := *want == *got", "fits := true || *want == *got", ""},
	}
}
