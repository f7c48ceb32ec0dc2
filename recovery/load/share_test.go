package load

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// ofShares has two queues, and records of shares of three.
func ofShares() *recoverytest.Fake {
	s := &recoverytest.Fake{Counted: content.Control{Marks: content.Marks{NextSeq: 1 << 63, LowSeq: 1<<63 - 1, NextQueue: 9}}}
	for id := range uint32(2) {
		s.Defined = append(s.Defined, content.Queue{ID: id + 1, Name: fmt.Append(nil, "q", id), Settings: &content.Settings{ShareBy: []byte("key"), DeadLetter: []byte{}}})
	}
	var b content.Batch
	for i, name := range []string{"acme", "", "\xff", strings.Repeat("x", content.MaxShareName)} {
		b.PutShare(&content.Share{ShareID: content.ShareID{Queue: 1, Number: uint64(i + 1)}, Name: []byte(name), Weight: uint32(i + 2), MaxClaimed: uint32(i), HeldUntil: int64(i) * 1_900_000_000_000, HeldBy: strings.Repeat("w", i), Rate: []byte("1/1h")}, true)
	}
	b.PutShare(&content.Share{ShareID: content.ShareID{Queue: 2, Number: 1}, Name: []byte("acme"), Rest: content.Rest{Bytes: "\x09\xcd\x01\x00", Fields: 1}}, true)
	b.PutShare(&content.Share{ShareID: content.ShareID{Queue: 3, Number: 1}, Name: []byte("left over"), Weight: 7}, true)
	s.Keys.Apply(&b)
	return s
}

func TestWhatSharesHaveComesThroughDumpAndLoad(t *testing.T) {
	for _, format := range []dump.Format{dump.JSONL, dump.Msgpack} {
		text, _ := dumpOf(t, ofShares(), dump.Options{Format: format})
		if bytes.Count(text, []byte("share_by")) != 2 || bytes.Count(text, []byte("weight")) != 4 || bytes.Count(text, []byte("max_claimed")) < 3 || bytes.Count(text, []byte("until")) != 3 || bytes.Count(text, []byte("1/1h")) != 4 || bytes.Count(text, []byte("consumer")) < 3 || bytes.Contains(text, []byte("left over")) {
			t.Errorf("the dump is\n%q", text)
		}
		dir := t.TempDir()
		load(t, dir, text, Options{})
		if again := folderDump(t, dir, dump.Options{Format: format}); !bytes.Equal(again, text) {
			t.Errorf("the dump of what was loaded is\n%q\nwant\n%q", again, text)
		}
	}
}

func TestAStartKnowsWhatSharesHave(t *testing.T) {
	dir := t.TempDir()
	recoverytest.Tamper(t, dir, func(b *content.Batch) {
		src := ofShares()
		b.SetMarks(src.Counted.Marks)
		for _, q := range src.Defined {
			b.PutQueue(q)
		}
		_ = src.Shares(func(s *content.Share) error { b.PutShare(s, true); return nil })
	})
	if report, err := verify.Folder(t.Context(), dir, verify.Options{}); err != nil || !report.Sound() || report.LeftOver != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	s, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	state, err := recovery.Restore(s, recovery.Options{Now: recoverytest.Later})
	if err != nil {
		t.Fatal(err)
	}
	if q := state.Queues; len(q) != 2 || len(q[0].Shares) != 4 || len(q[1].Shares) != 1 || q[1].Shares[0].Rest.Fields != 1 {
		t.Errorf("the queues are %+v", q)
	}
	if want := []content.ShareID{{Queue: 3, Number: 1}}; fmt.Sprint(state.EndedShares) != fmt.Sprint(want) {
		t.Errorf("%v are to be deleted, want %v", state.EndedShares, want)
	}
}

func TestADumpWithSharesThatNoServerHasIsRefused(t *testing.T) {
	queue := `{"type":"queue","queue":"q","id":1,"settings":{}}` + "\n"
	for lines, want := range map[string]string{
		`{"type":"share","name":"a","weight":2}`: "before its packets, shares",
		queue + `{"type":"share","weight":2}`:    "must have a name",
		queue + `{"type":"share","name":"a"}`:    "something of its own",
		queue + `{"type":"share","name":"` + strings.Repeat("x", content.MaxShareName+1) + `","weight":2}`: "must have a name",
		queue + `{"type":"share","name":"a","weight":1001}`:                                                "at most 1000",
		queue + `{"type":"share","name":"a","weight":2}` + "\n" + `{"type":"share","name":"a","weight":2}`: "twice",
		queue + `{"type":"share","name":"a","unknown_fields":1,"unknown":"x"}`:                             "unknown is not",
		queue + `{"type":"share","name":"a","weight":2,"max_claimed":4294967296}`:                          "at most 4294967295",
		queue + `{"type":"share","name":"a","rate":"1/1x"}`:                                                "such as 100/1s",
		queue + `{"type":"share","name":"a","until":-1}`:                                                   "expected 0 or more milliseconds",
		`{"type":"queue","queue":"q","id":1}` + "\n" + `{"type":"share","name":"a","weight":2}`:            "without settings",
		queue + `{"type":"share","name":"a","weight":2,"priority":1}`:                                      "priority",
	} {
		_, err := Load(t.Context(), t.TempDir(), strings.NewReader(strings.Replace(head, `"version":1`, `"version":3`, 1)+lines+"\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", lines, err, want)
		}
	}
}
