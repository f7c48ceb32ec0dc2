package ask

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestALineThatIsCutShortIsNoPacket(t *testing.T) {
	broken := errors.New("broken")
	lines, err := readLines(bufio.NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken))), 9, 100)
	if len(lines) != 1 || err != nil {
		t.Fatalf("%q, %v; want one line", lines, err)
	}
	if lines, err = readLines(bufio.NewReader(io.MultiReader(strings.NewReader("b"), iotest.ErrReader(broken))), 9, 100); len(lines) != 0 || !errors.Is(err, broken) {
		t.Errorf("%q, %v; want no line", lines, err)
	}
}
