package main

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// table is rows for people, whose columns are aligned when it is flushed. On a terminal a row is one
// line: the widest columns of texts are cut for that. For other outputs nothing is cut.
type table struct {
	w     io.Writer
	width int      // of the terminal, 0 for other outputs
	texts []string // heads of the columns that may be cut
	cut   []bool   // the same by column
	rows  [][]string
}

func newTable(w io.Writer, texts ...string) *table {
	width, _ := sizeOf(w)
	return &table{w: w, width: width, texts: texts}
}

// row adds a row, of which the first is the head. What is empty is a dash, so that each row has as
// many words.
func (t *table) row(cells ...string) {
	first := t.cut == nil
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
		if first {
			t.cut = append(t.cut, slices.Contains(t.texts, c))
		}
	}
	t.rows = append(t.rows, cells)
}

const (
	gap        = "  "
	leastText  = 7  // characters of a column of texts
	mostPadded = 80 // a longer cell makes no other one longer
)

// widths are those of the columns as they are, and of a whole row.
func (t *table) widths() (columns []int, row int) {
	columns = make([]int, len(t.cut))
	for _, cells := range t.rows {
		for i, c := range cells {
			columns[i] = max(columns[i], widthOf(c))
		}
	}
	for _, n := range columns {
		row += n + len(gap)
	}
	return columns, row - len(gap)
}

// tooWide tells whether a row takes more than a line of the terminal.
func (t *table) tooWide() bool {
	_, row := t.widths()
	return t.width > 0 && row > t.width
}

// Flush writes the rows at once.
func (t *table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	columns, row := t.widths()
	for ; t.width > 0 && row > t.width; row-- {
		widest := -1
		for i, n := range columns {
			if t.cut[i] && n > leastText && (widest < 0 || n > columns[widest]) {
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
			if t.width > 0 {
				c = shorten(c, columns[i])
			}
			out.WriteString(c)
			if i < len(cells)-1 {
				out.WriteString(strings.Repeat(" ", max(0, min(columns[i], max(mostPadded, t.width))-widthOf(c))) + gap)
			}
		}
		out.WriteByte('\n')
	}
	t.rows = nil
	_, err := t.w.Write(out.Bytes())
	return err
}

// widthOf is how many characters of a line a text takes.
func widthOf(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return uniseg.StringWidth(text)
		}
	}
	return len(text)
}

// shorten cuts a text that is wider than a column.
func shorten(text string, width int) string {
	if widthOf(text) <= width {
		return text
	}
	rest, state, used := text, -1, 0
	for {
		_, after, wide, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if used += wide; used >= width {
			return text[:len(text)-len(rest)] + "…"
		}
		rest, state = after, next
	}
}

// cell is a text of any bytes for a terminal, on one line: quoted if it could do more there than be
// read, and cut after so many characters.
func cell(text string, most int) string {
	end, n, plain := 0, 0, text != "" && text == strings.TrimSpace(text)
	for end < len(text) && n < most {
		r, size := utf8.DecodeRuneInString(text[end:])
		plain = plain && unicode.IsPrint(r) && (r != utf8.RuneError || size > 1)
		end += size
		n++
	}
	short, rest := text[:end], ""
	if end < len(text) {
		rest = "…"
	}
	if !plain {
		short = strconv.Quote(short)
	}
	return short + rest
}

// optional is a cell that is empty for an empty text.
func optional(text string, most int) string {
	if text == "" {
		return ""
	}
	return cell(text, most)
}

// longCell is the most characters of a cell. Of a longer text --json has the rest.
const longCell = 1000

const day = 24 * time.Hour

// span is a time for people, in its largest unit and the one below.
func span(d time.Duration) string {
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

// moment is a time for people: local, and how far it is.
func moment(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(now):
		return t.Local().Format(time.DateTime) + " (in " + span(t.Sub(now)) + ")"
	}
	return t.Local().Format(time.DateTime) + " (" + span(now.Sub(t)) + " ago)"
}
