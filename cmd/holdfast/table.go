package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// table is rows for people, whose columns are aligned when it is flushed.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row adds a row. What is empty is a dash, so that each row has as many words.
func (t table) row(cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
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

// The most characters of a cell.
const (
	shortCell = 40
	longCell  = 80
)

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
