package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// drawing is a command that is drawn, by its row in the tables of words.
type drawing struct {
	*world
	c     *client
	row   *words.Command
	group string
	words []string
}

// rows are all commands, by their names, with the groups that they belong to.
var rows = func() map[string]*drawing {
	all := map[string]*drawing{}
	for _, g := range words.Commands {
		for i := range g.Commands {
			all[g.Commands[i].Name] = &drawing{row: &g.Commands[i], group: g.Name}
		}
	}
	return all
}()

// byRow draws a command by its row.
func (w *world) byRow(c *client, name string) []string {
	d := *rows[name]
	d.world, d.c, d.words = w, c, []string{name}
	forms := divide(d.row.Arguments, " | ")
	form := w.r.IntN(len(forms))
	if d.arguments(forms[form]); form == len(forms)-1 {
		d.options()
	}
	if name == "LRANGE" && len(w.model.IDs(string(c.db)+d.words[1])) > 400 { // a longer reply leaves in parts, which no session shows
		d.words[3] = "4"
	}
	if w.chance(80) {
		d.spoil()
	}
	for _, word := range d.words { // somebody may push it
		w.drawn[word] = true
	}
	return d.words
}

// divide divides a text where a separator stands outside of [].
func divide(text, by string) (parts []string) {
	depth, from := 0, 0
	for i := range text {
		switch {
		case text[i] == '[':
			depth++
		case text[i] == ']':
			depth--
		case depth == 0 && i >= from && strings.HasPrefix(text[i:], by):
			parts, from = append(parts, text[from:i]), i+len(by)
		}
	}
	return append(parts, text[from:])
}

// arguments draws what a form of the arguments says. A number before what comes several times is
// how often that comes.
func (d *drawing) arguments(form string) {
	form = strings.ReplaceAll(form, " …", "…")
	counted := 0
	for item := range strings.SplitSeq(strings.Join(divide(form, " "), "\x00"), "\x00") {
		item, many := strings.CutSuffix(item, "…")
		inner, optional := strings.CutPrefix(item, "[")
		times := 1
		switch {
		case many && optional:
			times = d.r.IntN(3)
		case many:
			times += d.r.IntN(3)
		case optional:
			times = d.r.IntN(2)
		}
		if many && counted > 0 {
			d.words[counted] = fmt.Sprint(times)
		}
		if counted = 0; item == "n" {
			counted = len(d.words)
		}
		for range times {
			switch {
			case optional:
				d.arguments(pick(d.world, divide(inner[:len(inner)-1], "|")...))
			case item != "":
				d.words = append(d.words, d.value(pick(d.world, strings.Split(item, "|")...)))
			}
		}
	}
}

// options draws options of the work queue.
func (d *drawing) options() {
	var chosen words.Choice
	has := map[*words.Option]bool{}
	for _, o := range d.row.Options() {
		of := 4
		if o.Needs != nil || d.swarm.theme.waits { // waits are long where they meet few options
			of = 2
		}
		if bad := d.chance(300); !d.swarm.options[o.Word] || !d.chance(of) || !bad && (o.Needs != nil && !has[o.Needs] || chosen&o.Choice != 0) {
			continue
		}
		chosen, has[o] = chosen|o.Choice, true
		for more := true; more; more = o.Many && d.chance(3) {
			d.words = append(d.words, o.Word)
			for value := range strings.FieldsSeq(pick(d.world, strings.Split(o.Values, " | MATCH ")...)) {
				d.words = append(d.words, d.value(pick(d.world, strings.Split(value, "|")...)))
			}
		}
	}
}

// value draws what a word stands for.
func (d *drawing) value(word string) string {
	if word == strings.ToUpper(word) {
		return word
	}
	before, n := d.words[len(d.words)-1], d.r.IntN(4)
	if d.swarm.rules {
		if v := d.ruledValue(before + " " + word); v != "-" {
			return v
		}
	}
	switch before + " " + word {
	case "PRIO n":
		return fmt.Sprint(n)
	case "COUNT n", "WEIGHT n", "MAX-CLAIMED n", "COST n":
		return fmt.Sprint(1 + n)
	case "TAG name":
		return pick(d.world, "kind", "size")
	case "kind value", "eq value", "ne value", "lt value", "le value", "gt value", "ge value":
		return pick(d.world, "a", "b", "9", "10")
	case "size value":
		return fmt.Sprint(1 + d.r.IntN(12))
	case "PRODUCER name", "CONSUMER name":
		return pick(d.world, "w1", "w2")
	case "ANY n":
		return fmt.Sprint(1 + d.r.IntN(2))
	case "UNIQUE id":
		return pick(d.world, "u", "v")
	}
	switch word {
	case "queue", "other", "name", "from", "to":
		return d.name()
	case "payload":
		return d.payload()
	case "value", "new", "text":
		if d.group == "list" {
			if d.swarm.theme.few {
				return pick(d.world, "a", "b")
			}
			return pick(d.world, "a", "a", "b", "c", d.payload())
		}
		return pick(d.world, "", "7", "-3", "9223372036854775800", d.payload(), d.payload())
	case "bytes":
		return strings.Repeat("m", d.r.IntN(9))
	case "field":
		return pick(d.world, "f", "g", "")
	case "share", "k":
		return pick(d.world, "k", "l")
	case "tag":
		return pick(d.world, "kind", "size")
	case "op":
		return pick(d.world, "eq", "eq", "ne", "lt", "le", "gt", "ge")
	case "state":
		return pick(d.world, "ready", "delayed", "claimed", "dead", "done")
	case "id":
		return d.id(d.words[1])
	case "ms":
		return d.ms()
	case "unix-ms":
		return d.moment()
	case "timeout":
		return pick(d.world, "0", "0.05", "1", "2.5")
	case "s", "seconds":
		return fmt.Sprint(d.r.IntN(6))
	case "unix-seconds":
		return fmt.Sprint(d.wall()/1000 - 1 + d.r.Int64N(6))
	case "token", "n", "first", "last", "index", "count", "offset", "percent":
		return fmt.Sprint(n - d.r.IntN(2)*d.r.IntN(5))
	case "cursor", "c":
		return "0"
	case "pattern":
		return pick(d.world, "*", "*", "?1", "[^h]*")
	case "type":
		return pick(d.world, "string", "hash", "list")
	case "x":
		return pick(d.world, "0.1", "-2.5", "1e3", "7", "x")
	}
	return word // a choice of the row in lower case
}

// name draws the name of a queue or of what else the command is about.
func (d *drawing) name() string {
	kind := map[string][]string{"string": strs, "hash": hashes, "list": queues[:2]}[d.group]
	if d.group == "generic" || d.group == "transactions" || d.chance(20) {
		kind = slices.Concat(strs, hashes, queues)
	}
	if len(kind) > 0 {
		return pick(d.world, kind...)
	}
	return pick(d.world, "q1", "q1", "q2", "graves", ends)
}

// spoil makes a command one that is refused, mostly.
func (d *drawing) spoil() {
	switch last := len(d.words) - 1; d.r.IntN(4) {
	case 0:
		d.words = d.words[:max(1, last)]
	case 1:
		d.words = append(d.words, pick(d.world, "XX", "PRIO", d.words[last]))
	default:
		at := d.r.IntN(len(d.words))
		if at > 0 {
			d.words[at] = pick(d.world, "", "x", "-1", "007", "9223372036854775807", "9223372036854775808", "4294967296")
		}
	}
}
