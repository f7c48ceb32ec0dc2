package tables

import (
	"testing"

	"github.com/holdfast-queue/holdfast/storage/inject"
)

func TestWhatAScanTookIsGivenBack(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	const size = 8 << 20
	entries := make([]Entry, size>>14)
	for n := range entries {
		entries[n] = Entry{Key: key(n), Version: 1, Value: make([]byte, 1<<14)}
	}
	built, err := s.Build(0, 2*size, sorted(entries))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt(Adoption{Add: built, Window: 1}); err != nil {
		t.Fatal(err)
	}
	scanned := func() *View {
		v := s.View()
		if err := scan(v, func(Entry) {}); err != nil {
			t.Fatal(err)
		}
		if took := inject.Mapped(t, root); took < size {
			t.Fatalf("a scan took %d bytes of %d", took, size)
		}
		return v
	}
	v := scanned()
	v.Rest()
	if left := inject.Mapped(t, root); left > size/8 {
		t.Errorf("a rest leaves %d bytes of %d", left, size)
	}
	v.Close()
	v = scanned()
	window(t, s, []Entry{{Key: key(0)}}) // the next view has the table, too
	v.Close()
	if left := inject.Mapped(t, root); left > size/8 {
		t.Errorf("the last close leaves %d bytes of %d", left, size)
	}
}

// A page that the system gave to somebody else behind a last close is not touched.
func TestAViewThatIsClosedTooOftenTouchesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	window(t, s, []Entry{{Key: key(1), Value: []byte("value")}})
	v := s.View()
	s.Close()
	f := v.files[0]
	for range 2 {
		v.Close()
		if f.data != nil {
			t.Errorf("the table is mapped behind the last close: %d bytes", len(f.data))
		}
	}
	v.Rest()
}
