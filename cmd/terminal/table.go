package terminal

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Table is rows for people, whose columns are aligned when it is flushed. On a terminal a row is
// one line: the widest columns of texts are cut for that. For other outputs nothing is cut.
type Table struct {
	w     io.Writer
	width int      // of the terminal, 0 for other outputs
	texts []string // heads of the columns that may be cut
	spare []string // and of those that may be left out
	head  []string
	rows  [][]string
}

// NewTable makes a table. The texts are the heads of the columns that may be cut.
func NewTable(w io.Writer, texts ...string) *Table {
	width, _ := SizeOf(w)
	return &Table{w: w, width: width, texts: texts}
}

// Row adds a row, of which the first is the head. What is empty is a dash, so that each row has as
// many words.
func (t *Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = cmp.Or(c, "-")
	}
	if t.head == nil {
		t.head = cells
	}
	t.rows = append(t.rows, cells)
}

// leastText is how narrow a column of texts may become.
const leastText = 7

// widths are those of the columns as they are, with two spaces behind each, and what a row has too
// much for the terminal.
func (t *Table) widths() (columns []int, excess int) {
	columns = make([]int, len(t.head))
	for _, cells := range t.rows {
		for i, c := range cells {
			columns[i] = max(columns[i], widthOf(c)+2)
		}
	}
	if t.width == 0 {
		return columns, 0
	}
	for _, n := range columns {
		excess += n
	}
	return columns, excess - 2 - t.width
}

// Fits says that no row is wider than the terminal.
func (t *Table) Fits() bool {
	_, excess := t.widths()
	return excess <= 0
}

// keptText is how much of a text stays as long as there are columns to spare.
const keptText = 20

// Spare names columns that a narrow terminal does not show, the first of them first, so that texts
// are not cut too short. The rows must have one Flush.
func (t *Table) Spare(heads ...string) { t.spare = heads }

func (t *Table) leaveOut() {
	for _, head := range t.spare {
		columns, excess := t.widths()
		for i, n := range columns {
			if slices.Contains(t.texts, t.head[i]) {
				excess -= max(0, n-2-keptText)
			}
		}
		if excess <= 0 {
			return
		}
		at := slices.Index(t.head, head)
		for i, cells := range t.rows {
			t.rows[i] = slices.Delete(cells, at, at+1)
		}
		t.head = t.rows[0]
	}
}

// Flush writes the rows at once.
func (t *Table) Flush() error {
	t.leaveOut()
	columns, excess := t.widths()
	for ; excess > 0; excess-- {
		widest := -1
		for i, n := range columns {
			if n > leastText+2 && slices.Contains(t.texts, t.head[i]) && (widest < 0 || n > columns[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		columns[widest]--
	}
	var out bytes.Buffer
	for _, cells := range t.rows {
		for i, c := range cells {
			if c = shorten(c, columns[i]-2); i < len(cells)-1 {
				c += strings.Repeat(" ", columns[i]-widthOf(c))
			}
			out.WriteString(c)
		}
		out.WriteByte('\n')
	}
	t.rows = nil
	if out.Len() == 0 {
		return nil
	}
	_, err := t.w.Write(out.Bytes())
	return err
}

// widthOf is how many characters of a line a text takes.
func widthOf(text string) int {
	if utf8.RuneCountInString(text) == len(text) { // ASCII
		return len(text)
	}
	return uniseg.StringWidth(text)
}

// shorten cuts a text that is wider than a column.
func shorten(text string, width int) string {
	if widthOf(text) <= width {
		return text
	}
	end, used := 0, 0
	for next := uniseg.NewGraphemes(text); next.Next() && used+next.Width() < width; used += next.Width() {
		_, end = next.Positions()
	}
	return text[:end] + "…"
}

// longCell is the most characters of a cell. Of a longer text --json has the rest.
const longCell = 1000

// Cell is a text of any bytes for a terminal, on one line: quoted if it could do more there than be
// read, and cut if it is very long.
func Cell(text string) string { return cell(text, longCell) }

func cell(text string, most int) string {
	end := 0
	for n := 0; n < most && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	short, rest := text[:end], ""
	if end < len(text) {
		rest = "…"
	}
	if text == "" || text != strings.TrimSpace(text) || !readable(short, "") {
		short = strconv.Quote(short)
	}
	return short + rest
}

// Optional is a cell that is empty for an empty text.
func Optional(text string) string {
	if text == "" {
		return ""
	}
	return Cell(text)
}

// Span is a time for people, in its largest unit and the one below.
func Span(d time.Duration) string {
	d = max(d, 0)
	two := func(large, small time.Duration, a, b string) string {
		text := strconv.FormatInt(int64(d/large), 10) + a
		if rest := d % large / small; rest > 0 {
			text += strconv.FormatInt(int64(rest), 10) + b
		}
		return text
	}
	switch {
	case d >= day:
		return two(day, time.Hour, "d", "h")
	case d >= time.Hour:
		return two(time.Hour, time.Minute, "h", "m")
	case d >= time.Minute:
		return two(time.Minute, time.Second, "m", "s")
	case d >= time.Second:
		return d.Truncate(time.Second).String()
	}
	return d.Truncate(time.Millisecond).String()
}

// Moment is a time for people: local, and how far it is.
func Moment(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(now):
		return t.Local().Format(time.DateTime) + " (in " + Span(t.Sub(now)) + ")"
	}
	return t.Local().Format(time.DateTime) + " (" + Span(now.Sub(t)) + " ago)"
}

// Decimal is a whole number as text.
func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Plural counts things whose name takes an s.
func Plural[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
