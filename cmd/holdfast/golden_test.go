package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write what the commands print to the files in testdata/golden")

// A golden file looks as a shell does. A line with a prompt is a command, and what it prints stands
// below it. A line of standard error begins with "! ", and what varies is scrubbed.
//
//	$ holdfast queues            a command that has no terminal
//	60$ holdfast queues          the same in a terminal of 60 columns
//	$ HOLDFAST_DB=3 holdfast …   with a variable
//	$ holdfast … <<< "a\xff"     with standard input; "…" as in Go
//	$ holdfast serve … &         the server that the others ask, on the folder data
//	$ holdfast tail … &          begins
//	$ wait                       what the oldest that was begun prints until it ends
//	$ wait | head -3             the same, with a signal after three lines
//	$ kill                       ends the server
//	$ cat > NAME                 makes a file of the lines below
//	== …                         is for the reader
var prompt = regexp.MustCompile(`(?m)^(?:\d*\$ .*|\n?== .*)\n`)

// parts are of a command: the width of its terminal, words, standard input, whether it is only
// begun, and how many lines are read of it.
var parts = regexp.MustCompile(`^(\d*)\$ (.*?)(?: <<< ("(?:\\.|[^"\\])*"))?( &)?(?: \| head -(\d+))?\n$`)

func TestCommandsPrintWhatTheGoldenFilesHave(t *testing.T) {
	t.Setenv("COLUMNS", "") // the parser looks at it
	names, _ := filepath.Glob("testdata/golden/*.txt")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text := string(readFile(t, name))
			full, err := filepath.Abs(name)
			t.Chdir(t.TempDir())
			if printed := (&session{T: t}).play(text); *update {
				err = cmp.Or(err, os.WriteFile(full, []byte(printed), 0o644))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// session plays a golden file.
type session struct {
	*testing.T
	server *testServer // nil if none runs
	begun  []*tailing
}

// play runs the commands of a file in turn, and returns the file with what they print now.
func (s *session) play(text string) string {
	var out strings.Builder
	all := append(prompt.FindAllStringIndex(text, -1), []int{len(text)})
	for i, at := range all[:len(all)-1] {
		line, want := text[at[0]:at[1]], text[at[1]:all[i+1][0]]
		got := want
		if parts.MatchString(line) {
			got = s.do(parts.FindStringSubmatch(line), want)
		}
		if got != want && !*update {
			s.Errorf("line %d: %s%s", 1+strings.Count(text[:at[0]], "\n"), line, difference(want, got))
		}
		out.WriteString(line + got)
	}
	return out.String()
}

// do runs a command, and returns what it prints.
func (s *session) do(part []string, below string) string {
	width, _ := strconv.ParseUint(part[1], 10, 16)
	words, isBegun := wordsOf(part[2]), part[4] != ""
	c := command{stdin: strings.Join(wordsOf(part[3]), ""), env: make(map[string]string)}
	for _, protocol := range []string{"pinpriq", "barbershop", "redis", "admin"} {
		c.env["HOLDFAST_"+strings.ToUpper(protocol)] = nobody
		if s.server != nil {
			c.env["HOLDFAST_"+strings.ToUpper(protocol)] = s.server.addrs[protocol]
		}
	}
	for ; strings.Contains(words[0], "="); words = words[1:] {
		name, value, _ := strings.Cut(words[0], "=")
		c.env[name] = value
	}
	switch args := quietly(words[1:]); {
	case words[0] == "cat":
		if err := os.WriteFile(words[2], []byte(below), 0o600); err != nil {
			s.Fatal(err)
		}
		return below
	case words[0] == "kill":
		code := s.server.stop()
		s.server = nil
		return visible(result{code: code})
	case words[0] == "wait":
		oldest := s.begun[0]
		s.begun = s.begun[1:]
		return visible(oldest.end(part[5]))
	case isBegun && args[0] == "serve":
		s.server = c.serve(s.T, "data", append(args[1:], "--admin", "127.0.0.1:0", "--barbershop", "127.0.0.1:0")...)
	case isBegun && args[0] == "tail":
		channel := "holdfast:tail:" + args[1]
		if strings.HasPrefix(args[1], "-") {
			channel = "holdfast:events"
		}
		s.begun = append(s.begun, s.server.tail(s.T, channel, args[1:]...))
	case isBegun:
		s.begun = append(s.begun, c.begin(s.T, args...))
		if slices.Contains(args, "--block") {
			blocked(s.T, s.server)
		}
	case width > 0:
		return visible(c.onTerminal(s.T, uint16(width), 24, args...))
	default:
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		defer cancel()
		return visible(c.run(ctx, args...))
	}
	return ""
}

// wordsOf are the words of a line, some of them quoted.
func wordsOf(line string) (words []string) {
	for _, word := range re(`"(?:\\.|[^"\\])*"|\S+`).FindAllString(line, -1) {
		if text, err := strconv.Unquote(word); err == nil {
			word = text
		}
		words = append(words, word)
	}
	return words
}

// visible is what a command has printed, in lines that can be read, without what varies.
func visible(r result) string {
	out := scrub(r.stdout)
	for line := range strings.Lines(scrub(r.stderr)) {
		out += "! " + line
	}
	if r.code != exitOK {
		out += fmt.Sprintf("[exit code %d]\n", r.code)
	}
	return out
}

var re = regexp.MustCompile

// varies is what another run, machine or build prints differently, and what stands for it.
var varies = []struct {
	*regexp.Regexp
	with string
}{
	{re(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "MOMENT"},
	{re(`(?m)^\d\d:\d\d:\d\d\.\d{3}`), "hh:mm:ss.mmm"},
	{re(`"((?:\w+_)?(?:at|before|after|end|claim|us|per_s)|enqueued|until|expires|since|seen|age|seconds|uptime|redis_clients|memory|memory_counted|memory_limit|disk_free|disk_total|empty)":[\d.e-]+`), `"$1":N`},
	{re(`"died":\d{13}`), `"died":N`}, // the moment, not the figure
	{re(`\b\d[\ddhms]* ago\b`), "TIME ago"},
	{re(`(\bin|expired: \d+,|hashes: \d+,|expiry: \d+,) \d[\d.]*(ms|s|µs)`), "$1 TIME"},
	{re(`[\w.-]+-\d+-[A-Z2-7]{6}\b`), "HOST-PID-RANDOM"},
	{re(`127\.0\.0\.1:\d{5}\b`), "127.0.0.1:PORT"},
	{re(`\bprocess \d+`), "process PID"},
	{re(`"connections":\d+,"red`), `"connections":N,"red`},
	{re(`(?m)^((?:age|connections|memory|disk|uptime) +)[\d-].*`), "$1…"},
	{re(regexp.QuoteMeta(release)), "VERSION"},
	{re(`\bgo1\.[.\d]+( \w+/\w+)?`), "GO"},
	{re(`"os":"\w+","arch":"\w+"`), `"os":"OS","arch":"ARCH"`},
	{re(`"hash":"\w+"`), `"hash":"HASH"`},
	{re(`\$2a\$\d\d\$[\w./]{53}`), "HASH"},
	{re(`\d[\d.]* KiB of \d+ files`), "SIZE of N files"},
	{re(`\d[\d.]* KiB (before|after)`), "SIZE $1"},
	{re(`("bytes":|bytes: )\d+(,"files":|, files: )\d+`), "${1}N${2}N"},
}

// scrub makes of a text what each run prints.
func scrub(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "[no end of line]\n"
	}
	text = strings.Trim(strconv.Quote(text), `"`)
	page := []string{`\x1b[H`, "", `\x1b[K`, "", `\x1b[J`, ""} // paint it
	text = strings.NewReplacer(append(page, `\n`, "\n", `\"`, `"`, `\\`, `\`)...).Replace(text)
	dir, _ := os.Getwd()
	binary, _ := os.Executable()
	text = withoutTimes(strings.NewReplacer(dir, "DIR", binary, "PROGRAM").Replace(text))
	for _, v := range varies {
		text = v.ReplaceAllString(text, v.with)
	}
	return text
}

var (
	head  = re(`^(ID|QUEUE) +[A-Z/ …]+$`)
	timed = re(`\b(AGE|LEFT|SINCE|SEEN)( +|$)`)
)

// withoutTimes takes the times out of tables. Their columns get the same width.
func withoutTimes(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !head.MatchString(line) {
			continue
		}
		for _, at := range slices.Backward(timed.FindAllStringIndex(line, -1)) {
			cell := re(fmt.Sprintf(`^(.{%d})(\S+(?: ago)?)(| .*)$`, utf8.RuneCountInString(line[:at[0]])))
			for j := i; j < len(lines) && cell.MatchString(lines[j]); j++ {
				m := cell.FindStringSubmatch(lines[j])
				if lines[j] = m[1] + re(`\d\S*`).ReplaceAllString(m[2], "~"); m[3] != "" {
					lines[j] = fmt.Sprintf("%s%-7s%s", m[1], lines[j][len(m[1]):], strings.TrimLeft(m[3], " "))
				}
			}
		}
	}
	return strings.Join(lines, "\n")
}

// difference shows the lines from the first that differs to the last. Of long ones it leaves out
// the beginning that they share.
func difference(want, got string) string {
	a, b := slices.Collect(strings.Lines(want)), slices.Collect(strings.Lines(got))
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for i := range min(len(a), len(b)) {
		n := 0
		for n < min(len(a[i]), len(b[i])) && a[i][n] == b[i][n] {
			n++
		}
		if n > 150 {
			a[i], b[i] = "…"+a[i][n-50:], "…"+b[i][n-50:]
		}
	}
	return strings.Join(slices.Concat([]string{""}, a), "- ") + strings.Join(slices.Concat([]string{""}, b), "+ ")
}
