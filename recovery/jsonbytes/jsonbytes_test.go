package jsonbytes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestBytesInJSON(t *testing.T) {
	for in, want := range map[string]string{
		"":                         `""`,
		"a/b <&> é 😀 \x7f":         `"a/b <&> é 😀 ` + "\x7f" + `"`,
		"\"\\\b\f\n\r\t":           `"\"\\\b\f\n\r\t"`,
		"\x00\x1f":                 `"\u0000\u001f"`,
		"\u2027\u2028\u2029\u202a": `"` + "\u2027" + `\u2028\u2029` + "\u202a" + `"`,
		"\ufffd\ufeff":             "\"\ufffd\ufeff\"",
		"\xff":                     `{"base64":"/w=="}`,
		"\xed\xa0\x80":             `{"base64":"7aCA"}`,
		"text, cut in \xe2\x80":    `{"base64":"dGV4dCwgY3V0IGluIOKA"}`,
	} {
		if got := string(Append(nil, []byte(in))); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
	if got := string(AppendBase64([]byte("x"), []byte("text"))); got != `x{"base64":"dGV4dA=="}` {
		t.Error(got)
	}
}

func TestJSONOfOthersIsRead(t *testing.T) {
	for in, want := range map[string]string{
		`"\/\u0061\ud83d\uDE00\ufffd\u0000"`: "/a😀\ufffd\x00",
		`{ "base64" : "\/w==" }`:             "\xff",
		`{"base64":""}`:                      "",
		`{"base64":"dGV4dA=="}`:              "text",
	} {
		var got struct{ B Bytes }
		if err := json.Unmarshal([]byte(`{"b":`+in+`}`), &got); err != nil || got.B == nil || string(got.B) != want {
			t.Errorf("%s is read as %q, %v; want %q", in, got.B, err, want)
		}
	}
	for in, want := range map[string]string{
		`1`: "number", `[]`: "array", `true`: "bool", `{}`: "object", `{"base64":1}`: "object", `{"base64":"","x":1}`: "object",
		`{"base32":"AA=="}`: "object", `{"base64":"%"}`: "illegal base64", `{"base64":"AA"}`: "illegal base64",
		`"\ud800"`: "half", `"\ud800\u0061"`: "half", `"\udc00\ud800"`: "half", `"\ud800x\udc00"`: "half", "\"\xff\"": "UTF-8",
	} {
		var got struct{ B Bytes }
		if err := json.Unmarshal([]byte(`{"b":`+in+`}`), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is read as %q, %v; want an error that says %s", in, got.B, err, want)
		}
	}
	var none struct{ B Bytes }
	if err := json.Unmarshal([]byte(`{"b":"x","b":null}`), &none); err != nil || !none.B.IsZero() {
		t.Errorf("null is read as %q, %v", none.B, err)
	}
}

// anyBytes are some of any kind: texts, what JSON escapes, and all else.
var anyBytes = rapid.Custom(func(t *rapid.T) Bytes {
	part := rapid.OneOf(
		rapid.SliceOf(rapid.Byte()),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.SampledFrom([][]byte{{}, {0}, []byte("\"\\/\b\f\n\r\t"), []byte("\u2027\u2028\u2029\u202a\ufffd\ufeff"), []byte("\xe2\x80"), []byte("\xed\xa0\x80"), []byte(`\ud800`), []byte("<&>")}),
	)
	return append(Bytes{}, slices.Concat(rapid.SliceOfN(part, 0, 4).Draw(t, "parts")...)...)
})

// readAs checks that JSON is valid text in one line, and that bytes are read from it.
func readAs(t interface{ Fatalf(string, ...any) }, text []byte, want Bytes) {
	var got Bytes
	if err := json.Unmarshal(text, &got); err != nil || got == nil || !bytes.Equal(got, want) || !utf8.Valid(text) || bytes.ContainsAny(text, "\n\u2028\u2029") {
		t.Fatalf("%q is %q, which is read as %q, %v", want, text, got, err)
	}
	var loose any
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if got, ok := Of(loose); !ok || !bytes.Equal(got, want) {
		t.Fatalf("%q is read as %q by itself, want %q", text, got, want)
	}
}

func TestBytesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBytes.Draw(t, "bytes")
		readAs(t, Append(nil, b), b)
		readAs(t, AppendBase64(nil, b), b)
		for _, escapeHTML := range []bool{false, true} {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			if e.SetEscapeHTML(escapeHTML); e.Encode(b) != nil {
				t.Fatal("no error expected")
			}
			readAs(t, bytes.TrimSuffix(out.Bytes(), []byte("\n")), b)
		}
	})
}

func FuzzBytesComeBackAsTheyWere(f *testing.F) {
	for _, seed := range []string{"", "a\x00\"\\\u2028\ufffd", "\xff", `{"base64":""}`, "\xe2\x80"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		readAs(t, Append(nil, b), b)
		readAs(t, AppendBase64(nil, b), b)
		var got Bytes
		_ = json.Unmarshal(b, &got) // whatever it says, it ends
	})
}

func TestPairsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pairs
		for range rapid.IntRange(0, 4).Draw(t, "pairs") {
			p = append(p, anyBytes.Draw(t, "name"), anyBytes.Draw(t, "value"))
		}
		text, err := json.Marshal(p)
		var got Pairs
		if err != nil || json.Unmarshal(text, &got) != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", p) {
			t.Fatalf("%q is %s, which is read as %q, %v", p, text, got, err)
		}
	})
	for in, want := range map[string]string{
		`{"b":"2","a":{"base64":"/w=="},"b":"3"}`: `["a" "\xff" "b" "3"]`,
		`["b","2",{"base64":"/w=="},"1"]`:         `["b" "2" "\xff" "1"]`,
		`null`:                                    `[]`,
	} {
		var p Pairs
		if err := json.Unmarshal([]byte(in), &p); err != nil || fmt.Sprintf("%q", p) != want {
			t.Errorf("%s is read as %q, %v; want %s", in, p, err, want)
		}
	}
	var p Pairs
	if err := json.Unmarshal([]byte(`"a"`), &p); err == nil || !strings.Contains(err.Error(), "string") {
		t.Errorf("a text is read as %q, %v", p, err)
	}
	if got := string(Pairs{Bytes("a"), Bytes("\xff"), Bytes("a"), nil}.Append(nil)); got != `["a",{"base64":"/w=="},"a",""]` {
		t.Error(got)
	}
}
