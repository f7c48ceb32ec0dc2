package load

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/recovery/verify"
)

// verified is what a verification says of a closed folder.
func verified(t testing.TB, dir string) verify.Report {
	t.Helper()
	report, err := verify.Folder(t.Context(), dir, verify.Options{Now: recoverytest.Later})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func dumpOf(t testing.TB, src dump.Source, o dump.Options) ([]byte, dump.Report) {
	t.Helper()
	var out bytes.Buffer
	o.Now = cmp.Or(o.Now, recoverytest.Later)
	report, err := dump.Dump(src, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), report
}

// head is the header of a dump.
const head = `{"type":"holdfast","version":1,"next_sequence":"9223372036854775908","low_sequence":"9223372036854775807","next_queue":10}` + "\n"
