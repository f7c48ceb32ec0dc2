package storage

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
	"slices"
	"strings"
	"testing"
)

// walkedFolder holds the golden items, and what change writes behind their back.
func walkedFolder(t *testing.T, change func(e *entries)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := smallStore(t, dir)
	var b content.Batch
	for v, i := range goldenItems() {
		put(&b, v, i, 0, false, content.Mark{})
	}
	applied(t, s, &b)
	behind(t, s, change)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// walked lists what Items shows, with the length of each value.
func walked(n *Snapshot) (seen []string, damage []string, err error) {
	err = n.Items(func(_ content.ValueID, h *content.Head, f *content.Field, why error) error {
		if why != nil {
			damage = append(damage, why.Error())
		}
		switch {
		case h != nil:
			seen = append(seen, fmt.Sprintf("%d %s %d", h.ID, h.Name, len(h.Value)))
		case f != nil:
			seen = append(seen, fmt.Sprintf("%d/%d %s %d", f.Hash, f.ID, f.Name, len(f.Value)))
		}
		return nil
	})
	return seen, damage, err
}

func TestItemsShowsFieldsBehindTheirHashAndLargeValues(t *testing.T) {
	v := openView(t, walkedFolder(t, func(*entries) {}), ViewOptions{Tolerant: true})
	seen, damage, err := walked(v.Snapshot)
	want := []string{"1 string 4", "2  0", "3 large 1600", "4 hash 0", "4/5 small 1024", "4/7 large 1025", "5 string 13", "99/1 left over 1"}
	if err != nil || damage != nil || len(v.Findings()) > 0 || !slices.Equal(seen, want) {
		t.Errorf("%q, %q, %v, findings %v", seen, damage, err, v.Findings())
	}
}

func TestEachHarmToItemsIsSeen(t *testing.T) {
	key := func(v content.ValueID) []byte { return content.AppendItemKey(nil, v) }
	large := content.AppendValueKey(nil, content.ValueID{ID: 3})
	for name, c := range map[string]struct {
		change func(e *entries)
		want   string // in what the damage or the error says, or the finding of a tolerant view
	}{
		"a value that is gone":      {func(e *entries) { e.delete(large) }, "the value of head 3 is missing"},
		"a value that is too short": {func(e *entries) { e.put(large, []byte("x"), 0, true) }, "the value of head 3 has 1 bytes instead of 1600"},
		"a value of nothing":        {func(e *entries) { e.put(content.AppendValueKey(nil, content.ValueID{ID: 2}), []byte("x"), 0, true) }, "owner: head 2: a value of 1 bytes"},
		"a value behind all":        {func(e *entries) { e.put(content.AppendValueKey(nil, content.ValueID{ID: 200}), []byte("x"), 0, true) }, "owner: head 200: a value"},
		"a record of nonsense":      {func(e *entries) { e.put(key(content.ValueID{ID: 1}), []byte("x"), 0, true) }, "head 1: not a valid record"},
		"a head of no kind": {func(e *entries) {
			e.put(key(content.ValueID{ID: 1}), content.AppendItem(nil, &content.Item{Kind: 3, Name: []byte("string"), Version: 1}), 0, true)
		}, "head 1: the unknown kind 3"},
		"a key of nonsense":    {func(e *entries) { e.put([]byte(" k1"), []byte("x"), 0, true) }, "206b31 is not the key of a head"},
		"a field that is gone": {func(e *entries) { e.delete(key(content.ValueID{ID: 4, Field: 5, IsField: true})) }, "keys are missing: the control record counts 8, the scan found 7"},
		"a head that came back": {func(e *entries) {
			e.put(key(content.ValueID{ID: 50}), content.AppendItem(nil, &content.Item{Kind: content.String, Name: []byte("a"), Version: 1}), 0, true)
		}, "keys came back: the control record counts 8, the scan found 9"},
		"another version": {func(e *entries) {
			e.put(key(content.ValueID{ID: 1}), content.AppendItem(nil, &content.Item{Kind: content.String, Name: []byte("string"), Version: 7}), 0, true)
		}, "keys are not the ones written"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := walkedFolder(t, c.change)
			var said []string
			for _, o := range []ViewOptions{{}, {Tolerant: true}} {
				v := openView(t, dir, o)
				_, damage, err := walked(v.Snapshot)
				said = append(append(said, damage...), fmt.Sprint(err))
				for _, f := range v.Findings() {
					said = append(said, f.String())
				}
				if o.Tolerant && err != nil {
					t.Errorf("a tolerant view stops: %v", err)
				}
			}
			if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("%q, want %q", said, c.want)
			}
		})
	}
}

func TestAnItemsValueIsReadByItsIdentity(t *testing.T) {
	s := openTest(t, walkedFolder(t, func(*entries) {}), Options{Window: minWindow})
	ids := []content.ValueID{{ID: 4, Field: 7, IsField: true}, {ID: 1}, {ID: 3}, {ID: 77}}
	lengths := make([]int, len(ids))
	s.ReadValues(ids, func(i int, value []byte, damage error) {
		lengths[i] = len(value)
		if v := goldenItems()[ids[i]].Value; damage == nil && !bytes.Equal(v, value) {
			t.Errorf("%v is %x", ids[i], value)
		}
		if (value == nil) != errors.Is(damage, ErrDamaged) {
			t.Errorf("%v: %d bytes, %v", ids[i], len(value), damage)
		}
	})
	if !slices.Equal(lengths, []int{1025, 0, 1600, 0}) {
		t.Errorf("%d", lengths)
	}
}
