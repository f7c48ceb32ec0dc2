package load

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const base = 1 << 63

// deadLetters has four packets in four states, several times, which died in a queue whose record
// comes later.
func deadLetters(times uint64) *recoverytest.Fake {
	s := &recoverytest.Fake{
		Counted: content.Control{Marks: content.Marks{NextSeq: base + 1000, LowSeq: base - 1, NextQueue: 9}},
		Defined: []content.Queue{
			{ID: 2, Name: []byte("dead"), Settings: &content.Settings{Lease: 2}, Counters: content.Counters{Pushed: 2}},
			{ID: 8, Name: []byte("jobs"), Settings: &content.Settings{Lease: 8}, Counters: content.Counters{Pushed: 8}},
		},
	}
	tried := []content.Delivery{
		{State: content.Claimed, Until: recoverytest.Later + 5},
		{State: content.Dead},
		{State: content.Delayed, Until: recoverytest.Later + 5},
		{State: content.Claimed, Until: recoverytest.Later + 5, Expiry: recoverytest.Later},
	}
	for i := range 4 * times {
		d := tried[i%4]
		d.Identity, d.Attempts, d.Token, d.Consumer, d.Origin = base+i, 3, base+500+i, "w", 8
		s.Try(d).Reason = "why"
		s.Put(2, 1, base+i, content.Packet{Expiry: d.Expiry})
	}
	s.Put(8, 1, base+900, content.Packet{Identity: base + 970})
	s.Try(content.Delivery{Identity: base + 970, Attempts: 1, Token: base + 990}).Progress = "\x07"
	s.Count()
	return s
}

func TestAnExpiredPacketIsLoadedWithItsClaim(t *testing.T) {
	text, _ := dumpOf(t, deadLetters(1), dump.Options{})
	dir := t.TempDir()
	if report := load(t, dir, text, Options{}); report.Packets != 5 || report.Expired != 0 {
		t.Errorf("report %+v, want all 5 packets", report)
	}
	if got := folderDump(t, dir, dump.Options{}); !bytes.Equal(got, text) {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	if report := load(t, t.TempDir(), text, Options{Now: recoverytest.Later + 5}); report.Packets != 4 || report.Expired != 1 {
		t.Errorf("report %+v, want that the expired packet goes with the end of its lease", report)
	}
}

func TestAFolderWithSettingsIsNotEmpty(t *testing.T) {
	src := deadLetters(1)
	src.Stored, src.Tried = nil, nil
	src.Count()
	dir := recoverytest.InFolder(t, src)
	text, _ := dumpOf(t, recoverytest.Many(7), dump.Options{})
	if _, err := Load(t.Context(), dir, bytes.NewReader(text), Options{}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("got %v, want that the folder is not empty", err)
	}
}

func TestADumpHasNoSettingsAndStringOfOneName(t *testing.T) {
	settings, keys := &recoverytest.Fake{}, &recoverytest.Fake{}
	settings.Defined = []content.Queue{{ID: 1, Name: []byte("name"), Settings: &content.Settings{Lease: 1}}}
	var b content.Batch
	b.PutHead(&content.Head{ID: 1, Kind: content.String, Name: []byte("name"), Version: 1}, content.Mark{})
	keys.Keys.Apply(&b)
	for _, s := range []*recoverytest.Fake{settings, keys} {
		s.Counted.Marks = content.Marks{NextSeq: base, LowSeq: base - 1, NextQueue: 2, LastKey: 1}
		s.Count()
	}
	keys.Defined = settings.Defined
	if _, err := dump.Dump(keys, io.Discard, dump.Options{}); err == nil || !strings.Contains(err.Error(), "packets or settings") {
		t.Errorf("got %v, want that no dump can have both", err)
	}
}
