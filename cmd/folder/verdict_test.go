package folder

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
)

// anyReport is a report with something of everything.
func anyReport() *verify.Report {
	return &verify.Report{
		Found: storage.Found{Findings: []storage.Finding{{Kind: "lost", Key: "packets", What: "1 packet is <lost>"}}, More: 1},
		Queues: []verify.QueueCount{
			{ID: 1, Name: []byte("jobs"), Counts: verify.Counts{0, 1234567, 2, 7, 8, 9}, Bytes: 12},
			{ID: 3, Name: []byte("\xff of \"bytes\""), Counts: verify.Counts{3}, Expired: 4},
		},
		Packets: 1234572, Expired: 4, Bytes: 12, Keys: 5, LeftOver: 6, Took: 1500 * time.Millisecond,
	}
}

// printed is what print writes of a report.
func printed(t *testing.T, print func(w *bufio.Writer)) string {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	print(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestVerdictIsATable(t *testing.T) {
	want := `lost: packets: 1 packet is <lost>
1 more finding not listed
QUEUE                DATABASE  READY    DELAYED  CLAIMED  DEAD  DONE  PRIORITY-0  EXPIRED  BYTES
jobs                 0         1234567  2        7        8     9     0           0        12
"\xff of \"bytes\""  0         0        0        0        0     0     3           4        0
not sound: 1234572 packets of 12 bytes in 2 queues, strings and hashes: 5, expired: 4, 1.5s
`
	if got := printed(t, func(w *bufio.Writer) { printVerdict(w, anyReport()) }); got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
	empty := &verify.Report{}
	if got, want := printed(t, func(w *bufio.Writer) { printVerdict(w, empty) }), "sound: 0 packets of 0 bytes in 0 queues, expired: 0, 0s\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestVerdictIsOneJSONObject(t *testing.T) {
	for want, report := range map[string]*verify.Report{
		`{"sound":true,"findings":[],"more":0,"packets":0,"expired":0,"bytes":0,"keys":0,"left_over":0,"queues":[],"seconds":0}`: {},
		`{"sound":false,"findings":[{"kind":"lost","key":"packets","what":"1 packet is <lost>"}],"more":1,"packets":1234572,"expired":4,"bytes":12,"keys":5,"left_over":6,"queues":[` +
			`{"id":1,"queue":"jobs","unselectable":0,"ready":1234567,"delayed":2,"claimed":7,"dead":8,"done":9,"expired":0,"bytes":12},` +
			`{"id":3,"queue":{"base64":"/yBvZiAiYnl0ZXMi"},"unselectable":3,"ready":0,"delayed":0,"claimed":0,"dead":0,"done":0,"expired":4,"bytes":0}],"seconds":1.5}`: anyReport(),
	} {
		if got := printed(t, func(w *bufio.Writer) { printVerdictJSON(w, report) }); got != want+"\n" {
			t.Errorf("printed\n%swant\n%s", got, want)
		}
	}
}
