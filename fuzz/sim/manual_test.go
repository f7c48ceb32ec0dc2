package sim

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/storage/disk/simulated"
)

// manual is the page with the commands, and examples of them.
const manual = "../../netproto/resp/COMMANDS.md"

// example is a command of the page, as redis-cli -3 shows it, with its reply.
type example struct {
	words  []string
	reply  any // a map is its names and values in turn
	killed bool
}

var (
	prompt   = regexp.MustCompile(`^127\.0\.0\.1:6379> (.*)$`)
	argument = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)
	element  = regexp.MustCompile(`^ *\d+\) `)
	pair     = regexp.MustCompile(`^ *\d+# ("(?:[^"\\]|\\.)*") => (.*)$`)
)

// examples reads those of the page. Between two blocks the server may be killed: the page says so.
func examples(t *testing.T) (all []*example) {
	b, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	inside, killed := false, false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			inside = line == "```console"
		}
		if killed = killed || !inside && strings.Contains(line, "killed with `kill -9` and started again"); !inside {
			continue
		}
		if m := prompt.FindStringSubmatch(line); m != nil {
			e := &example{killed: killed}
			for _, word := range argument.FindAllString(m[1], -1) {
				e.words = append(e.words, text(word))
			}
			all, killed = append(all, e), false
		} else if len(all) > 0 {
			all[len(all)-1].add(line)
		}
	}
	return all
}

func text(word string) string {
	if plain, err := strconv.Unquote(word); err == nil {
		return plain
	}
	return word
}

// add adds a line of a reply.
func (e *example) add(line string) {
	list, _ := e.reply.([]any)
	if at := element.FindString(line); at != "" {
		list, line = append(list, []any{}), line[len(at):]
		e.reply = list
	}
	m := pair.FindStringSubmatch(line)
	switch {
	case m == nil && !strings.HasPrefix(line, "```"):
		e.reply = scalar(line)
	case m == nil:
	case len(list) > 0 && reflect.TypeOf(list[len(list)-1]) == reflect.TypeOf(list):
		list[len(list)-1] = append(list[len(list)-1].([]any), text(m[1]), scalar(m[2]))
	default:
		e.reply = append(list, text(m[1]), scalar(m[2]))
	}
}

func scalar(shown string) any {
	if n, is := strings.CutPrefix(shown, "(integer) "); is {
		v, _ := strconv.ParseInt(n, 10, 64)
		return v
	}
	if e, is := strings.CutPrefix(shown, "(error) "); is {
		return model.Err(e)
	}
	return text(shown)
}

// moment is when a reply of the page was given, 0 if it does not say so.
func (e *example) moment() int64 {
	list, _ := e.reply.([]any)
	if len(list) == 1 && e.words[0] == "QCLAIM" {
		f := model.Pairs(list[0])
		lease := int64(30_000)
		if len(e.words) > 5 {
			lease, _ = strconv.ParseInt(e.words[5], 10, 64)
		}
		return f["lease-end"].(int64) - lease
	}
	if died, is := model.Pairs(e.reply)["died"].(int64); is {
		return died
	}
	return 0
}

// The page begins with the number 6, in this millisecond.
const (
	firstNumber = 6
	firstMoment = 1795211850119
)

// Server and model reply what the page says, at the moments that it tells.
func TestTheExamplesOfTheManual(t *testing.T) {
	all := examples(t)
	if len(all) < 10 {
		t.Fatalf("%s has %d examples", manual, len(all))
	}
	simulated.Trace(t, 2, func(run *simulated.Run) {
		w := newWorld(run, &figures{did: map[string]int{}})
		defer w.leave()
		wall := func(at int64) {
			time.Sleep(time.Duration(max(0, at-w.wall())) * time.Millisecond)
		}
		w.skews = []int64{firstMoment - time.Now().UnixMilli() - 100}
		w.start(true)
		c := w.connect()
		for range firstNumber - 1 {
			w.tell(c, []string{"QPUSH", "others", "x"})
		}
		wall(firstMoment)
		for i, e := range all {
			if e.killed {
				w.skews, w.kill = []int64{w.skew, w.skew}, true
				w.restart()
				c = w.connect()
			}
			for _, later := range all[i:min(i+3, len(all))] { // QNACK does not tell when, and what it has done does
				if at := later.moment(); at != 0 && (later == e || e.words[0] == "QNACK") {
					wall(at)
					break
				}
			}
			if got := w.tell(c, e.words); !reflect.DeepEqual(got, e.reply) {
				t.Errorf("%s: %q replies\n%v, and the page says\n%v", manual, e.words, got, e.reply)
			}
		}
	})
}

// tell has a client send a command, and returns the reply, which the model gives, too.
func (w *world) tell(c *client, words []string) (reply any) {
	w.loose = func(_ []string, got, want any) {
		if err := model.Same(got, want); err != nil {
			w.Fatalf("%q: %v\nThe model has\n%s", words, err, w.model.Dump())
		}
		reply = got
	}
	defer func() { w.loose = nil }()
	w.send(c, [][]string{words})
	if len(c.later) > 0 {
		w.send(c, nil)
	}
	for range 20 {
		if w.turn(); len(c.sent) == 0 {
			return reply
		}
	}
	w.Fatalf("nobody answers %q", words)
	return nil
}
