package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// request writes a request as a client does.
func request(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// parse feeds a stream to a parser in pieces of so many bytes and one more, and the rest at once.
// Behind much a piece is longer, as all is copied each time.
func parse(stream []byte, cuts []byte) (requests []string, err error) {
	return parsePieces(stream, func(held int, rest []byte) int {
		if len(cuts) == 0 {
			return len(rest)
		}
		n := max(int(cuts[0])+1, held/64)
		cuts = cuts[1:]
		return n
	})
}

// parsePieces feeds a stream to a parser in pieces, as a connection does: what is not a whole
// request is given again, with more behind it. piece says how long the next one is, of the bytes
// held back and those to come. It returns the requests, and the error that ends the stream.
func parsePieces(stream []byte, piece func(held int, rest []byte) int) (requests []string, err error) {
	var p Parser
	var buf []byte
	var places [2][]byte
	for i := 0; ; i++ {
		n := min(len(stream), piece(len(buf), stream))
		at := &places[i%2] // another place each time
		*at = append(append((*at)[:0], buf...), stream[:n]...)
		buf = *at
		stream = stream[n:]
		for len(buf) > 0 {
			args, size, err := p.Next(buf, nil)
			if refusal, ok := err.(Refusal); ok {
				requests = append(requests, string(refusal))
			} else if err != nil {
				return requests, err
			}
			if size == 0 {
				break
			}
			if len(args) > 0 {
				requests = append(requests, fmt.Sprintf("%q", args))
			}
			buf = buf[size:]
			p.Reset()
		}
		if len(stream) == 0 {
			return requests, nil
		}
	}
}

func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
		err    string
	}{
		"an array":                 {"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n", []string{`["GET" "x"]`}, ""},
		"two":                      {"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", []string{`["PING"]`, `["PING"]`}, ""},
		"line breaks in a value":   {"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\r\n\r\n", []string{`["ECHO" "\r\n\r\n"]`}, ""},
		"an empty value":           {"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", []string{`["ECHO" ""]`}, ""},
		"none is skipped":          {"*0\r\n*-1\r\n*-10\r\nPING\r\n", []string{`["PING"]`}, ""},
		"a line":                   {"SET  key\tvalue\r\n", []string{`["SET" "key" "value"]`}, ""},
		"a line without CR":        {"PING\nPING\n", []string{`["PING"]`, `["PING"]`}, ""},
		"empty lines":              {"\r\n\n  \r\nPING\r\n", []string{`["PING"]`}, ""},
		"quotes":                   {`SET "a b" 'c "d"' "\x41\n\\\"" 'it\'s' ""` + "\n", []string{`["SET" "a b" "c \"d\"" "A\n\\\"" "it's" ""]`}, ""},
		"a quote within a word":    {`a"b c"` + "\n", []string{`["ab c"]`}, ""},
		"no hex digits":            {`"\xzz\x4"` + "\n", []string{`["xzzx4"]`}, ""},
		"quotes that do not end":   {"SET \"x\r\n", nil, "unbalanced quotes in request"},
		"single ones":              {"SET 'x\r\n", nil, "unbalanced quotes in request"},
		"a word behind a quote":    {`SET "x"y` + "\r\n", nil, "unbalanced quotes in request"},
		"too many arguments":       {"*1048577\r\n", nil, "invalid multibulk length"},
		"far too many":             {"*3000000000\r\n", nil, "invalid multibulk length"},
		"no number of arguments":   {"*x\r\n", nil, "invalid multibulk length"},
		"nothing for a number":     {"*\r\n", nil, "invalid multibulk length"},
		"an argument too long":     {"*1\r\n$1048577\r\n", nil, ""},
		"a length below zero":      {"*1\r\n$-1\r\n", nil, "invalid bulk length"},
		"a length that is none":    {"*1\r\n$1x\r\n", nil, "invalid bulk length"},
		"a length with a plus":     {"*1\r\n$+1\r\n", nil, "invalid bulk length"},
		"no bulk":                  {"*1\r\nPING\r\n", nil, "expected '$', got 'P'"},
		"an array in an array":     {"*1\r\n*1\r\n$4\r\nPING\r\n", nil, "expected '$', got '*'"},
		"a byte that is no sign":   {"*1\r\n\x00\r\n", nil, "expected '$', got '?'"},
		"an endless line":          {strings.Repeat("x", maxLine+1), nil, "too big inline request"},
		"an endless count":         {"*" + strings.Repeat("1", maxLine+1), nil, "too big mbulk count string"},
		"a count that is too long": {"*" + strings.Repeat("1", maxLine+1) + "\r\n", nil, "too big mbulk count string"},
		"an endless length":        {"*1\r\n$" + strings.Repeat("1", maxLine+1), nil, "too big bulk count string"},
		"what is before an error":  {"PING\r\n*x\r\n", []string{`["PING"]`}, "invalid multibulk length"},
		"one that is skipped": {"*2\r\n$1048577\r\n" + strings.Repeat("x", 1<<20+1) + "\r\n$1\r\nx\r\nPING\r\n",
			[]string{"ERR too large: an argument has 1048577 bytes, the limit is 1048576", `["PING"]`}, ""},
		"two that are skipped": {"*2\r\n$1\r\nx\r\n$1048577\r\n" + strings.Repeat("x", 1<<20+1) + "\r\n*1\r\n$1048578\r\n" + strings.Repeat("y", 1<<20+2) + "\r\n",
			[]string{"ERR too large: an argument has 1048577 bytes, the limit is 1048576", "ERR too large: an argument has 1048578 bytes, the limit is 1048576"}, ""},
		"far too long":              {"*1\r\n$536870913\r\n", nil, "invalid bulk length: the limit is 1048576 bytes"},
		"an error in a skipped one": {"*2\r\n$1048577\r\n" + strings.Repeat("x", 1<<20+1) + "\r\n$x\r\n", nil, "invalid bulk length"},
		"a request of many bytes": {"*5\r\n" + strings.Repeat("$1048576\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 5) + "PING\r\n",
			[]string{"ERR the request is longer than 4194304 bytes: send it in pieces", `["PING"]`}, ""},
		"a request line of HTTP":    {"GET / HTTP/1.1\r\nPING\r\n", nil, "HTTP"},
		"an incomplete request":     {"*2\r\n$3\r\nGET\r\n$1\r\nx\r", nil, ""},
		"a number that is cut":      {"*2", nil, ""},
		"the largest argument":      {"*1\r\n$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n", []string{`["` + strings.Repeat("x", 1<<20) + `"]`}, ""},
		"the longest line":          {strings.Repeat("x", maxLine) + "\n", []string{`["` + strings.Repeat("x", maxLine) + `"]`}, ""},
		"one byte more than it":     {strings.Repeat("x", maxLine+1) + "\n", nil, "too big inline request"},
		"a count with leading zero": {"*01\r\n", nil, "invalid multibulk length"},
	} {
		for _, cuts := range [][]byte{nil, bytes.Repeat([]byte{0}, min(len(c.stream), 4096)), bytes.Repeat([]byte{255}, len(c.stream)/256)} {
			got, err := parse([]byte(c.stream), cuts)
			if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %.200q (%v), want %.200q (%s)", name, got, err, c.want, c.err)
			}
		}
	}
}

// randomStream is some requests, of which one or two are refused: for a long argument, or because
// all together are too long. Some have an error behind them.
func randomStream(r *rand.Rand) []byte {
	var b []byte
	add := func(args ...string) { b = append(b, request(args...)...) }
	words := []string{"PING", "", "\r", "\r\n$3\r\n", "*1\r\n", strings.Repeat("x", 300)}
	some := func() []string {
		args := make([]string, 1+r.IntN(4))
		for i := range args {
			args[i] = words[r.IntN(len(words))]
		}
		return args
	}
	for range 1 + r.IntN(4)/3 {
		add(some()...)
		switch r.IntN(20) {
		case 0: // many short arguments
			add(slices.Repeat([]string{strings.Repeat("\r", 30+r.IntN(20))}, MaxRequest/32)...)
		case 1: // a few long ones
			add(slices.Repeat([]string{strings.Repeat("y", MaxArg)}, 5)...)
		default:
			add(slices.Concat(some(), []string{strings.Repeat("\n", MaxArg+1+r.IntN(9))}, some())...)
		}
		add(some()...)
	}
	if r.IntN(4) == 0 {
		b = append(b, "*1\r\n$x\r\n"...)
	}
	return b
}

func TestAStreamWithRefusedRequestsReadsAsItDoesWholeWhereverItIsCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		stream := randomStream(r)
		want, wantErr := parse(stream, nil)
		for name, piece := range map[string]func(held int, rest []byte) int{
			"behind each CR": func(held int, rest []byte) int {
				return max(1, 1+bytes.IndexByte(rest, '\r'), held/8)
			},
			"in reads of 64 KiB": func(int, []byte) int { return 64 << 10 },
			"anywhere":           func(held int, rest []byte) int { return 1 + r.IntN(64<<r.IntN(12)) + held/8 },
		} {
			got, err := parsePieces(stream, piece)
			if !slices.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("stream %d, cut %s: %d requests (%v), want %d (%v)", i, name, len(got), err, len(want), wantErr)
			}
		}
	}
}

func TestAnAnnouncedLengthTakesNoMemory(t *testing.T) {
	const head = "*1048576\r\n$1048576\r\n"
	buf := []byte(head)
	var p Parser
	if n := testing.AllocsPerRun(100, func() {
		if _, size, err := p.Next(buf, nil); size != 0 || err != nil {
			t.Fatal(size, err)
		}
		p.Reset()
	}); n > 0 {
		t.Errorf("%v allocations for the head of a large request", n)
	}
}

func TestARequestTakesNoMemory(t *testing.T) {
	buf := []byte(request("SET", "key", "value"))
	var p Parser
	args := make([][]byte, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		if got, _, err := p.Next(buf, args[:0]); len(got) != 3 || err != nil {
			t.Fatal(got, err)
		}
		p.Reset()
	}); n > 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// FuzzRequests checks that the same requests are found wherever the stream is cut.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nx\r\nPING\r\n*1\r\n$4\r\nPING\r\n"), []byte{0, 1, 2, 3})
	f.Add([]byte("set \"a\\x41\" 'b'\r\n*-1\r\n*0\r\n\r\n*1\r\n$x\r\n"), []byte{5})
	f.Add([]byte("*1\r\n$3\r\nabc\r\n*1\r\nfoo\r\n"), []byte{12, 0, 0})
	f.Add([]byte("*2\r\n$1\r\nx\r\n$1048577\r\n"+strings.Repeat("x", 1<<20+1)+"\r\nPING\r\n"), bytes.Repeat([]byte{255}, 96))
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		whole, wholeErr := parse(stream, nil)
		cut, cutErr := parse(stream, cuts)
		if len(cuts) == 0 {
			return
		}
		if !slices.Equal(whole, cut) || (wholeErr == nil) != (cutErr == nil) || wholeErr != nil && wholeErr.Error() != cutErr.Error() {
			t.Errorf("%q\nwhole %q (%v)\ncut   %q (%v)", stream, whole, wholeErr, cut, cutErr)
		}
	})
}
