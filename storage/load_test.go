package storage

import "testing"

func TestLoadedRecordStaysUntilTheNextBatch(t *testing.T) {
	dir := t.TempDir()
	s := smallStore(t, dir)
	apply := func(fill func(b *Batch)) {
		t.Helper()
		var b Batch
		fill(&b)
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	want := func(rec string) {
		t.Helper()
		for _, when := range []string{"applied", "opened again"} {
			if got := s.Loaded(); string(got) != rec || (got == nil) != (rec == "") {
				t.Fatalf("%s: the loaded record is %q, want %q", when, got, rec)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = smallStore(t, dir)
		}
	}
	want("")
	apply(func(b *Batch) {
		b.SetLoaded([]byte("an earlier one"))
		b.SetLoaded([]byte("all of it"))
		if b.Len() != 1 || b.Bytes() != loadedBytes([]byte("all of it")) {
			t.Errorf("the batch has %d entries and %d bytes", b.Len(), b.Bytes())
		}
	})
	want("all of it")
	apply(func(*Batch) {}) // nothing
	want("all of it")
	apply(func(b *Batch) { b.PutQueue(Queue{ID: 1, Name: []byte("q")}) })
	want("")
}
