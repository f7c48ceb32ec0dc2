package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestALineMayBeAsLongAsItIsAllowedToBe(t *testing.T) {
	const most = 2 * readBytes
	next := lines(bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", most-1)+"\n"+strings.Repeat("x", most)+"\n"), 100), most)
	if line, err := next(); len(line) != most || err != nil {
		t.Fatalf("a line of %d bytes: got %d, %v", most, len(line), err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "longer than 131072 bytes") {
		t.Errorf("one byte more: %v", err)
	}
}

func TestATextThatIsTooLongIsRefusedBeforeAllOfItIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("many MiB are read")
	}
	for name, c := range map[string]struct {
		text string
		most int // bytes read
	}{
		"letters": {"x", longText + 4<<20},
		"no text": {`",`, maxShape + 4<<20},
	} {
		in := &endless{text: strings.Repeat(c.text, 10_000)}
		if _, err := lines(bufio.NewReader(io.MultiReader(strings.NewReader(`{"payload":"`), in)), maxLine)(); err == nil || in.given > c.most {
			t.Errorf("%s: %d bytes were read, expected %d at most; %v", name, in.given, c.most, err)
		}
	}
}

func TestALongTextMayBeAllEscapes(t *testing.T) {
	if testing.Short() {
		t.Skip("many MiB are read")
	}
	var s shape
	line := []byte(`{"payload":"` + strings.Repeat(`\u0001`, 100_000))
	for length := 0; length < content.MaxRecord; length += 100_000 {
		for _, end := range []int{len(line) - 3, len(line)} { // as it comes
			if err := s.see(line[:end]); err != nil {
				t.Fatal(err)
			}
		}
		s.seen = len(`{"payload":"`)
	}
	line = append(line, `","tags":{"a":"b"}}`...)
	s.seen = len(line) - len(`","tags":{"a":"b"}}`)
	if err := s.see(line); err != nil || s.inside || s.text != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRecordsOfMsgpackAreSplitWhateverIsInThem(t *testing.T) {
	long := strings.Repeat("l", 70_000)
	values := []any{
		nil, true, false, 0, 127, -1, -32, -33, 128, 255, 256, 65535, 65536, 1 << 32, -1 << 40, float32(1.5), 1.5,
		"", "a", long[:31], long[:32], long[:255], long[:256], long, []byte{}, []byte(long[:255]), []byte(long[:256]), []byte(long),
		[]any{}, make([]any, 15), make([]any, 16), make([]any, 70_000), map[string]any{}, map[string]any{"a": map[string]any{"b": []any{1}}},
	}
	var text bytes.Buffer
	e := msgpack.NewEncoder(&text)
	e.UseCompactInts(true)
	var want [][]byte
	for _, v := range values {
		from := text.Len()
		if err := e.Encode(map[string]any{"v": v}); err != nil {
			t.Fatal(err)
		}
		want = append(want, bytes.Clone(text.Bytes()[from:]))
	}
	for _, ext := range []string{"\xd4\x01a", "\xd5\x01ab", "\xd8\x01" + long[:16], "\xc7\x02\x01ab", "\xc8\x00\x02\x01ab", "\xc9\x00\x00\x00\x02\x01ab"} {
		want = append(want, []byte("\x81\xa1v"+ext))
		text.Write(want[len(want)-1])
	}
	next := maps(bufio.NewReader(&text))
	for i, w := range want {
		if raw, err := next(); err != nil || !bytes.Equal(raw, w) {
			t.Fatalf("record %d: got %d bytes, %v, want %d", i, len(raw), err, len(w))
		}
	}
	if _, err := next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestAPayloadOfAnyLengthLeavesRoomForTheOtherFields(t *testing.T) {
	for _, size := range []int{longValue, longValue + 1, maxMap - 4096, maxMap - 100, maxMap, maxMap + 16} {
		var text bytes.Buffer
		if err := msgpack.NewEncoder(&text).Encode(map[string]any{"payload": make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
		text.Bytes()[0]++ // one field more, behind the payload
		text.WriteString("\xa4tags\x91\xda\x20\x00" + strings.Repeat("x", 0x2000))
		if raw, err := maps(bufio.NewReader(&text))(); err != nil {
			t.Errorf("a payload of %d bytes: %v behind %d bytes", size, err, len(raw))
		}
	}
}

func TestRecordsOfMsgpackAreBoundedBesidesOnePayload(t *testing.T) {
	bin := func(n int) string { return "\xc6" + string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	for name, c := range map[string]struct{ text, want string }{
		"values in values":  {"\x81\xa1v" + strings.Repeat("\x91", maxDepth+1), "values 100 deep"},
		"many values":       {"\x81\xa1v\xdd\x7f\xff\xff\xff" + strings.Repeat("\xc0", maxMap), "longer than 1572864 bytes"},
		"two long payloads": {"\x82\xa1v" + bin(maxMap) + strings.Repeat("x", maxMap) + "\xa1w" + bin(maxMap), "longer than"},
		"beyond a payload":  {"\x81\xa1v" + bin(content.MaxPayload+1), "longer than"},
		"a long one inside": {"\x81\xa1v\x91" + bin(maxMap), "longer than"},
		"a code of none":    {"\x81\xa1v\xc1", "0xc1"},
		"cut in a payload":  {"\x81\xa1v" + bin(content.MaxPayload) + "x", "cut short"},
	} {
		raw, err := maps(bufio.NewReader(strings.NewReader(c.text)))()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		if cap(raw) > 4*len(c.text)+4*readBytes {
			t.Errorf("%s: %d bytes were made room for, and %d have come", name, cap(raw), len(c.text))
		}
	}
}
