package tables

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

var listOfThree = &List{
	Format: 1, Window: 3, Floor: Floor{1, 2, 3, math.MaxUint64}, LastID: 9,
	Tables: []Table{
		{ID: 7, Level: 0, Size: 10, Sum: math.MaxUint64, Entries: 12, Version: 3},
		{ID: 8, Level: 0, Size: 10, Sum: 1, Entries: 12, Version: 3},
		{ID: 2, Level: 6, Size: 1 << 40, Sum: 2, Entries: 1 << 40, Version: 1},
	},
}

// A folder that was written once must be read for ever.
func TestListIsReadAsItWasWritten(t *testing.T) {
	const own = `{"Format":1,"Window":3,"Floor":{"Batch":1,"Segment":2,"Offset":3,"Sum":18446744073709551615},"LastID":9,"Tables":[` +
		`{"ID":7,"Level":0,"Size":10,"Sum":18446744073709551615,"Entries":12,"Version":3},` +
		`{"ID":8,"Level":0,"Size":10,"Sum":1,"Entries":12,"Version":3},` +
		`{"ID":2,"Level":6,"Size":1099511627776,"Sum":2,"Entries":1099511627776,"Version":1}]}`
	listOfThree.sum()
	b, err := listOfThree.encode()
	if err != nil || !bytes.HasSuffix(b, []byte(own)) {
		t.Fatalf("%q, %v", b, err)
	}
	if l, err := decode(b); err != nil || !reflect.DeepEqual(l, listOfThree) {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestDamagedListIsRefused(t *testing.T) {
	b, err := listOfThree.encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, err := decode(b); err == nil {
				t.Errorf("bit %d of byte %d is passed over", bit, i)
			}
			b[i] ^= 1 << bit
		}
		if _, err := decode(b[:i]); err == nil {
			t.Errorf("%d bytes of it are enough", i)
		}
	}
	if _, err := decode(append(b, b[headSize:]...)); err == nil {
		t.Error("a second set of changes is passed over")
	}
}

// FuzzListField gives MANIFEST a field of ours with any bytes, beside what Badger reads of them.
func FuzzListField(f *testing.F) {
	for _, l := range []*List{{Format: 1}, listOfThree} {
		own, err := json.Marshal(l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(own)
		f.Add(own[:len(own)-1])
	}
	for _, own := range []string{
		``, `{}`, `null`, `[]`, `{"Format":2}`, `{"Format":1,"Tables":null}`, `{"Format":1,"Tables":[{"ID":1,"Level":7}]}`,
		`{"Format":1,"Tables":[{"ID":1,"Level":-1,"Size":-1}]}`, `{"Format":1,"Tables":[{"ID":1},{"ID":1}]}`, `{"Format":1,"Window":-1}`,
		`{"Format":1,"Window":18446744073709551616}`, `{"format":1,"Format":1}`,
	} {
		f.Add([]byte(own))
	}
	f.Fuzz(func(t *testing.T, own []byte) {
		l := &List{}
		_ = json.Unmarshal(own, l) // so that Badger's part agrees where it can
		set, err := proto.Marshal(l.changes())
		if err != nil {
			t.Fatal(err)
		}
		set = protowire.AppendBytes(protowire.AppendTag(set, listField, protowire.BytesType), own)
		l, err = decode(append(head(set), set...))
		if err != nil {
			return
		}
		for _, x := range l.Tables {
			if x.Level < 0 || x.Level >= levels {
				t.Fatalf("a table has level %d", x.Level)
			}
		}
		again, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		if same, err := decode(again); err != nil || !reflect.DeepEqual(same, l) {
			t.Errorf("%+v becomes %+v, %v", l, same, err)
		}
	})
}
