package ask

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// byWord are the flags of a command by the words of the protocol: the tag "word", or the name.
func byWord(command reflect.Type) map[string]reflect.StructField {
	all := make(map[string]reflect.StructField)
	for f := range command.Fields() {
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			for word, inner := range byWord(f.Type) {
				all[word] = inner
			}
			continue
		}
		all[cmp.Or(f.Tag.Get("word"), strings.ToUpper(f.Name))] = f
	}
	return all
}

func TestEachOptionOfTheWorkQueueHasAFlag(t *testing.T) {
	commands := map[string]reflect.Type{
		"QPUSH": reflect.TypeFor[Push](), "QPOP": reflect.TypeFor[Pop](), "QCLAIM": reflect.TypeFor[Claim](), "QACK": reflect.TypeFor[Ack](), "QNACK": reflect.TypeFor[Nack](),
		"QPEEK": reflect.TypeFor[Peek](), "QLIST": reflect.TypeFor[List](), "QMOVE": reflect.TypeFor[Move](), "QRUN": reflect.TypeFor[RunNow](),
		"QPURGE": reflect.TypeFor[Purge](), "QHARVEST": reflect.TypeFor[Harvest](), "QREDRIVE": reflect.TypeFor[Redrive](), "QUEUES": reflect.TypeFor[Queues](),
		"QSET": reflect.TypeFor[Set](), "QSHARE": reflect.TypeFor[Share](), "QSHARES": reflect.TypeFor[Shares](),
	}
	without := map[string]string{
		"QPOP OR": "it takes from one queue", "QPOP OLDEST": "as without a flag", "QCLAIM OLDEST": "as without a flag",
		"QNACK AT": "--delay says it", "QLIST CURSOR": "it goes through all pages", "QSHARES AFTER": "as QLIST", "QSHARES COUNT": "as QLIST",
		"QMPUSH": "push --lines has no options of its own", "QLOAD": "load --to-server",
	}
	options := 0
	for _, g := range words.Commands {
		for i := range g.Commands {
			c := &g.Commands[i]
			if without[c.Name] != "" || len(c.Options()) == 0 {
				continue
			}
			if commands[c.Name] == nil {
				t.Errorf("%s has no command that has flags for its options", c.Name)
				continue
			}
			flags := byWord(commands[c.Name])
			for _, o := range c.Options() {
				options++
				f, has := flags[o.Word]
				if has == (without[c.Name+" "+o.Word] != "") {
					t.Errorf("%s of %s has a flag: %v", o.Word, c.Name, has)
				}
				_, high, ranged := strings.Cut(f.Tag.Get("range"), " ")
				if ranged && high != strconv.FormatInt(o.High, 10) {
					t.Errorf("the flag for %s of %s is at most %s, the words say %d", o.Word, c.Name, high, o.High)
				}
			}
		}
	}
	if options < 40 {
		t.Errorf("%d options were looked at", options)
	}
}
