package load

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/recoverytest"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

func TestLongRecordsAmongShortOnesAreLoadedHoweverTheyAreWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("many MB are written by one goroutine")
	}
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
		forms := []dump.Options{{Payload: dump.Text}, {Payload: dump.Base64}, {Format: dump.Msgpack}}
		if inject.Runs() < 100 { // any of them: many megabytes pass each
			forms = forms[rand.IntN(len(forms)):][:1]
		}
		for _, o := range forms {
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
	if testing.Short() {
		t.Skip("many MB are written by one goroutine")
	}
	src := recoverytest.Many(60)
	for i := range src.Stored {
		if i%3 > 0 {
			src.Stored[i].Packet.Key = bytes.Repeat([]byte{'k', byte(i)}, 30_000)
			src.Stored[i].Packet.Payload = bytes.Repeat([]byte{byte(i)}, 65_535)
		}
	}
	for _, o := range []dump.Options{{}, {Format: dump.Msgpack}} {
		text, _ := dumpOf(t, src, o)
		dir := t.TempDir()
		load(t, dir, text, Options{})
		if got := folderDump(t, dir, o); !bytes.Equal(got, text) {
			t.Errorf("%v: %d bytes are dumped of %d", o.Format, len(got), len(text))
		}
		if n := packetsIn(t, dir); n != 60 {
			t.Errorf("%v: %d packets", o.Format, n)
		}
	}
}
