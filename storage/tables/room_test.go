package tables

import "testing"

// What a view holds gives no room; a merge is asked anew behind each step how long the next one is.
func TestAMergeTellsWhatItsStepsGiveBack(t *testing.T) {
	for _, held := range []bool{false, true} {
		s := open(t, t.TempDir())
		var entries []Entry
		for i := range 4000 {
			entries = append(entries, Entry{Key: key(i), Value: make([]byte, 100)})
		}
		window(t, s, entries)
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize}); err != nil {
			t.Fatal(err)
		}
		v := s.View()
		for i := range entries {
			entries[i].Deleted, entries[i].Value = i%2 == 0, nil
		}
		window(t, s, entries[:3000])
		if !held {
			v.Close()
		}
		old := s.List().Bytes
		var came, gave, dropped int64
		steps, step := 0, int64(1)
		merged, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, Step: step, All: true, Room: func(comes, goes int64) error {
			came, gave = came+comes, gave+goes
			return nil
		}, Stepped: func(bytes int64) int64 {
			steps++
			dropped += bytes
			return 1 << 30 // the next one is the last
		}})
		if err != nil || steps != 2 || dropped == 0 || dropped != merged.Dropped {
			t.Errorf("%d steps dropped %d bytes of %d, %v", steps, dropped, merged.Dropped, err)
		}
		if made := came - s.List().Bytes; !held && gave != old+made || held && gave >= old/2+made { // the window is not held
			t.Errorf("a view holds what was there: %v; of %d bytes, and %d made meanwhile, %d give room", held, old, made, gave)
		}
		if held {
			v.Close()
		}
	}
}
