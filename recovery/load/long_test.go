package load

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/recoverytest"

	"github.com/holdfast-queue/holdfast/recovery/dump"
)

func TestLongRecordsAmongShortOnesAreLoadedHoweverTheyAreWritten(t *testing.T) {
	const long = 1_000_000
	sizes := map[string][]int{
		"three long ones":         {long, long, long},
		"long one, short ones":    append([]int{long}, make([]int, 20_000)...),
		"short, long, short":      append(append(make([]int, 3000), long), make([]int, 3000)...),
		"just fits and just not":  {300_000, 300_000, 390_000, 400_000, 600_000, 640_000, 20},
		"large payloads":          bytesOf(2000, 1100),
		"long and large in turns": append(bytesOf(300, 1100), append([]int{long}, bytesOf(300, 1100)...)...),
	}
	for name, sizes := range sizes {
		src := recoverytest.Many(len(sizes))
		for i, n := range sizes {
			if n > 0 {
				src.Stored[i].Packet.Payload = bytes.Repeat([]byte{1}, n) // six bytes when escaped
			}
		}
		for _, o := range []dump.Options{{Payload: dump.Text}, {Payload: dump.Base64}, {Format: dump.Msgpack}} {
			text, _ := dumpOf(t, src, o)
			dir := t.TempDir()
			load(t, dir, text, Options{})
			if got := folderDump(t, dir, o); !bytes.Equal(got, text) {
				t.Errorf("%s, %v %v: %d bytes are dumped of %d", name, o.Format, o.Payload, len(got), len(text))
			}
		}
	}
}

func bytesOf(n, size int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = size
	}
	return s
}

func TestLongKeysAndPayloadsTogetherAreLoaded(t *testing.T) {
	src := recoverytest.Many(60)
	for i := range src.Stored {
		if i%3 > 0 {
			src.Stored[i].Packet.Key = bytes.Repeat([]byte{'k', byte(i)}, 30_000)
			src.Stored[i].Packet.Payload = bytes.Repeat([]byte{byte(i)}, 65_535)
		}
	}
	for _, o := range []dump.Options{{}, {Format: dump.Msgpack}} {
		text, _ := dumpOf(t, src, o)
		for name, merge := range map[string]bool{"new folder": false, "merge": true} {
			dir := t.TempDir()
			load(t, dir, text, Options{Merge: merge})
			if got := folderDump(t, dir, o); !merge && !bytes.Equal(got, text) {
				t.Errorf("%v: %d bytes are dumped of %d", o.Format, len(got), len(text))
			}
			if n := packetsIn(t, dir); n != 60 {
				t.Errorf("%v, %s: %d packets", o.Format, name, n)
			}
		}
	}
}

func TestLoadGoesOnBehindManyEmptyLines(t *testing.T) {
	text, _ := dumpOf(t, recoverytest.Many(60), dump.Options{})
	want := t.TempDir()
	load(t, want, text, Options{})
	lines := bytes.SplitAfter(text, []byte{'\n'})
	lines = lines[:len(lines)-2]
	short := strings.Repeat("\n", 3000)
	var b strings.Builder
	for i, line := range lines {
		if b.Write(line); i == 30 {
			b.WriteString(short)
		}
	}
	at := b.Len() - 500 // within the last packets
	long := []byte(b.String() + `{"type":"end","packets":60,"queues":7}`)
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := Load(ctx, dir, &stopper{bytes.NewReader(long), at, stop}, Options{Now: recoverytest.Later, batchBytes: 1, chunkBytes: 512})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a part of the dump is stored") {
		t.Fatal(err)
	}
	report := load(t, dir, long, Options{})
	if report.Resumed < 30 || report.Packets != 60 {
		t.Errorf("report %+v", report)
	}
	if got, want := folderDump(t, dir, dump.Options{}), folderDump(t, want, dump.Options{}); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
