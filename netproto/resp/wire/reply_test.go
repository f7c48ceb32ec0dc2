package wire

import "testing"

func TestRepliesAreThoseOfTheirVersion(t *testing.T) {
	for want, got := range map[string][]byte{
		"x:-7\r\n":          AppendHead([]byte("x"), ':', -7),
		"x$4\r\na\r\nb\r\n": AppendBulk([]byte("x"), "a\r\nb"),
		"$0\r\n\r\n":        AppendBulk(nil, []byte{}),
		"%2\r\n":            AppendBegin(nil, true, '%', 2, 4),
		"*4\r\n":            AppendBegin(nil, false, '%', 2, 4),
	} {
		if string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
