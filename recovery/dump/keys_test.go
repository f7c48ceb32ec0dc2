package dump

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// keyTexts lists the strings and fields of a dump.
func keyTexts(t *testing.T, dump []byte) (all []string) {
	t.Helper()
	var h *content.Head
	report, err := Read(t.Context(), bytes.NewReader(dump), func(r *Record) error {
		switch r.Type {
		case TypeString, TypeHash:
			if h = r.Head(); h.Kind == content.String {
				all = append(all, fmt.Sprintf("%d:%s=%.6q %d", h.Database, h.Name, h.Value, h.Expiry))
			}
		case TypeField:
			f := r.Field()
			all = append(all, fmt.Sprintf("%s.%s=%.6q %d", h.Name, f.Name, f.Value, h.Expiry))
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Keys == 0 {
		t.Error("no keys are counted")
	}
	return all
}

func TestStringsAndHashesAreReadBackFromEachFormat(t *testing.T) {
	want := []string{
		`0:text "="a\tb é" 4000000000001`, "0:\xff=\"\\x00\\xff\" 0", `3:none="" 0`, `0:long="long l" 0`,
		`hash.small="bell \a" 4000000000002`, "hash.\xfe=\"long l\" 4000000000002", `hash.="" 4000000000002`,
	}
	for _, o := range []Options{{}, {Payload: Base64}, {Format: Msgpack}} {
		dump, report := dumpOf(t, recoverytest.OneOfEach(), o)
		if got := keyTexts(t, dump); !slices.Equal(got, want) || report.Keys != 8 || report.OmittedKeys != 0 {
			t.Errorf("%+v: got %q, want %q; report %+v", o, got, want, report)
		}
	}
}

func TestPatternsChooseStringsAndHashesByTheirNames(t *testing.T) {
	dump, report := dumpOf(t, recoverytest.OneOfEach(), Options{Queues: []string{"hash", "te*", "jobs"}})
	if got := keyTexts(t, dump); len(got) != 4 || report.Keys != 5 || report.Queues != 1 {
		t.Errorf("%q, report %+v", got, report)
	}
}

func TestALimitedDumpAndOneForSpreadsheetsLeaveKeysOutAndSaySo(t *testing.T) {
	for _, o := range []Options{{Limit: 100}} {
		src := recoverytest.OneOfEach()
		src.Count()
		if _, report := dumpOf(t, src, o); report.Keys != 0 || report.OmittedKeys != 10 {
			t.Errorf("%+v: report %+v", o, report)
		}
	}
}

// harmedKeys is a source in which some heads and fields cannot be read.
type harmedKeys struct {
	*recoverytest.Fake
	harm func(v content.ValueID) (record, value bool)
}

func (s *harmedKeys) Walk(v storage.Visitor) error {
	if item := v.Item; item != nil {
		v.Item = func(v content.ValueID, h *content.Head, f *content.Field, _ error) error {
			damage := fmt.Errorf("%w: a block is gone", storage.ErrDamaged)
			switch record, value := s.harm(v); {
			case record:
				return item(v, nil, nil, damage)
			case value:
				return item(v, h, f, damage)
			}
			return item(v, h, f, nil)
		}
	}
	return s.Fake.Walk(v)
}

func TestADumpEndsAtAKeyThatItCannotReadUnlessItSalvages(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(v content.ValueID) (record, value bool)
		keys int64
		lost []string
	}{
		"a string":            {func(v content.ValueID) (bool, bool) { return v.ID == 2, false }, 7, []string{"head 2"}},
		"a value":             {func(v content.ValueID) (bool, bool) { return false, v.ID == 4 }, 7, []string{"head 4"}},
		"a field":             {func(v content.ValueID) (bool, bool) { return v.Field == 7, false }, 7, []string{"field 7 of hash 5"}},
		"the value of each":   {func(v content.ValueID) (bool, bool) { return false, v.ID == 5 && v.IsField }, 4, []string{"field 6 of hash 5", "field 7 of hash 5", "field 8 of hash 5"}},
		"a hash, not a field": {func(v content.ValueID) (bool, bool) { return v == content.ValueID{ID: 5}, false }, 4, []string{"head 5"}},
	} {
		src := recoverytest.OneOfEach()
		src.Count()
		harmed := &harmedKeys{src, c.harm}
		var out bytes.Buffer
		if _, err := Dump(harmed, &out, Options{Now: recoverytest.Later}); !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), c.lost[0]) {
			t.Errorf("%s: %v, want that it names %s", name, err, c.lost[0])
		}
		out.Reset()
		report, err := Dump(harmed, &out, Options{Now: recoverytest.Later, Salvage: true})
		if err != nil || report.Keys != c.keys || report.LostKeys != int64(len(c.lost)) {
			t.Errorf("%s: %v, report %+v", name, err, report)
		}
		for i, f := range report.Findings {
			if i >= len(c.lost) || f.Key != c.lost[i] {
				t.Errorf("%s: finding %v", name, f)
			}
		}
		keyTexts(t, out.Bytes())
	}
}

func TestTwoKeysOfOneNameAreNotDumped(t *testing.T) {
	for name, lost := range map[string]int64{"long": 1, "none": 0, "jobs": 1, "empty \"\n": 0} { // the one is of another database, the other a queue without packets
		src := recoverytest.OneOfEach()
		var b content.Batch
		b.PutHead(&content.Head{ID: 99, Kind: content.String, Name: []byte(name), Version: 99, Value: []byte("x")}, content.Mark{})
		src.Keys.Apply(&b)
		src.Count()
		_, err := Dump(src, new(bytes.Buffer), Options{Now: recoverytest.Later})
		if (err != nil) != (lost > 0) {
			t.Errorf("%q: %v", name, err)
		}
		dump, report := dumpOf(t, src, Options{Salvage: true})
		if report.LostKeys != lost {
			t.Errorf("%q: report %+v", name, report)
		}
		keyTexts(t, dump)
	}
}

func TestTwoFieldsOfOneNameAreNotDumped(t *testing.T) {
	src := recoverytest.OneOfEach()
	var b content.Batch
	b.PutField(&content.Field{Hash: 5, ID: 99, Name: []byte("small"), Version: 99, Value: []byte("x")}, content.Mark{})
	src.Keys.Apply(&b)
	src.Count()
	if _, err := Dump(src, new(bytes.Buffer), Options{Now: recoverytest.Later}); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("%v, want that the folder is damaged", err)
	}
	dump, report := dumpOf(t, src, Options{Salvage: true})
	if report.LostKeys != 1 {
		t.Errorf("report %+v, want one that is lost", report)
	}
	keyTexts(t, dump)
}

func TestKeysThatNoServerHoldsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("dumps are read one after the other")
	}
	const hash = `{"type":"hash","name":"h"}` + "\n"
	const text = `{"type":"string","name":"s"}` + "\n"
	end := func(keys int) string {
		return fmt.Sprintf(`{"type":"end","packets":0,"queues":0,"keys":%d}`+"\n", keys)
	}
	for name, c := range map[string]struct{ in, want string }{
		"no name":                      {`{"type":"string"}`, `a string must have the field "name"`},
		"one name twice":               {text + text, "line 3: two strings or hashes have the name \"s\""},
		"a hash without fields":        {hash + text, "line 3: the hash \"h\" has no fields"},
		"a hash without fields at end": {hash + end(1), "has no fields"},
		"a hash with a value":          {`{"type":"hash","name":"h","value":"x"}`, `a hash has no field "value"`},
		"a string of a hash":           {`{"type":"string","name":"h","hash":"x"}`, `a string has no field "hash"`},
		"a field of no hash":           {`{"type":"field","hash":"h","name":"f"}`, "the fields of a hash follow its record"},
		"a field of another hash":      {hash + `{"type":"field","hash":"g","name":"f"}`, "the fields of a hash follow its record"},
		"a field behind a string":      {text + `{"type":"field","hash":"s","name":"f"}`, "the fields of a hash follow its record"},
		"a field that expires":         {hash + `{"type":"field","hash":"h","name":"f","expires":5}`, `a field has no field "expires"`},
		"one field twice":              {hash + `{"type":"field","hash":"h","name":"f"}` + "\n" + `{"type":"field","hash":"h","name":"f"}`, "two fields"},
		"a queue behind":               {text + `{"type":"queue","id":1,"queue":"a"}`, "expected all queues before them"},
		"too long":                     {`{"type":"string","name":"s","value":"` + strings.Repeat("x", MaxRecord) + `"}`, "at most 1179648"},
		"name too long":                {`{"type":"string","name":"` + strings.Repeat("x", 1<<16) + `","value":""}`, "at most 65535"},
		"too few":                      {text + end(2), "counts 2 strings, hashes and fields, but there are 1"},
		"after the end":                {text + end(1) + text, "after the end record"},
		"a list of the name": {`{"type":"queue","id":1,"queue":"s"}` + "\n" +
			`{"type":"packet","queue":"s","priority":1,"sequence":"9223372036854775808"}` + "\n" + text, "a string and a queue with packets or settings"},
		"settings of the name": {`{"type":"queue","id":1,"queue":"s","settings":{}}` + "\n" + text, "a string and a queue with packets or settings"},
	} {
		_, err := Read(t.Context(), strings.NewReader(head+c.in), nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
