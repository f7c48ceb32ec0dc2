package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// badInput is requests of the work queue with the errors that they get.
var badInput = []struct{ request, reply string }{
	{"QPUSH q", "ERR wrong number of arguments for 'qpush' command"},
	{"QPUSH q x PRIO", "ERR PRIO: expected a value behind it"},
	{"QPUSH q x PRIO -1", `ERR PRIO: expected a number from 0 to 4294967295, got "-1"`},
	{"QPUSH q x PRIO 4294967296", `ERR PRIO: expected a number from 0 to 4294967295, got "4294967296"`},
	{"QPUSH q x PRIO 9223372036854775808", `ERR PRIO: expected a number from 0 to 4294967295, got "9223372036854775808"`},
	{"QPUSH q x PRIO 1.5", `ERR PRIO: expected a number from 0 to 4294967295, got "1.5"`},
	{"QPUSH q x PRIO 0", `ERR PRIO: expected a number from 1 on, as the packet has no KEY to go with, got "0"`},
	{"QPUSH q x prio 1 PRIO 2", "ERR PRIO: expected it once only"},
	{"QPUSH q x TTL -1", `ERR TTL: expected a number from 0 to 315360000000, got "-1"`},
	{"QPUSH q x TTL 315360000001", `ERR TTL: expected a number from 0 to 315360000000, got "315360000001"`},
	{"QPUSH q x DELAY -5", `ERR DELAY: expected a number from 0 to 315360000000, got "-5"`},
	{"QPUSH q x AT -1", `ERR AT: expected a number from 0 to 4398046511103, got "-1"`},
	{"QPUSH q x AT 4398046511104", `ERR AT: expected a number from 0 to 4398046511103, got "4398046511104"`},
	{"QPUSH q x AT 5 DELAY 5", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QMPUSH q 1 x DELAY 5 AT 5", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QNACK q 1 1 DELAY 5 AT 5", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QNACK q 1 1 AT 5 DEAD", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QNACK q 1 1 UNCOUNTED DEAD", "ERR DEAD, UNCOUNTED, HOLD: expected one of them"},
	{"QNACK q 1 1 UNCOUNTED DELAY 5 UNCOUNTED", "ERR UNCOUNTED: expected it once only"},
	{"QPUSH q x DELAY soon", `ERR DELAY: expected a number from 0 to 315360000000, got "soon"`},
	{"QPUSH q x COUNT 1", `ERR unknown option "COUNT": expected one of PRIO, TTL, DELAY, AT, BLOCK, WINDOW, UNTIL, REPLACE, TELL, KEY, PRODUCER, LEASE, META, UNIQUE, TAG`},
	{"QPUSH q x y", `ERR unknown option "y": expected one of PRIO, TTL, DELAY, AT, BLOCK, WINDOW, UNTIL, REPLACE, TELL, KEY, PRODUCER, LEASE, META, UNIQUE, TAG`},
	{"QPUSH q x TAG a", "ERR TAG: expected a name and a value behind it"},
	{"QPUSH q x TAG a 1 TAG b 2 TAG a 3", `ERR TAG: expected each name once, got "a" twice`},
	{"QPUSH q x TAG  1", "ERR TAG: expected a name that is not empty"},
	{"QPUSH q x" + strings.Repeat(" TAG a 1", 10_000), "ERR TAG: expected at most 64 tags"},
	{"QPUSH q x TAG a {16384}", "ERR TAG: expected names and values of at most 16384 bytes together"},
	{"QPUSH q x TAG a {9000} TAG b {9000}", "ERR TAG: expected names and values of at most 16384 bytes together"},
	{"QPUSH q x PRODUCER ", "ERR PRODUCER: expected 1 to 255 bytes, got 0"},
	{"QPUSH q x PRODUCER {256}", "ERR PRODUCER: expected 1 to 255 bytes, got 256"},
	{"QPUSH q x UNIQUE ", "ERR UNIQUE: expected 1 to 255 bytes, got 0"},
	{"QPUSH q x UNIQUE {256}", "ERR UNIQUE: expected 1 to 255 bytes, got 256"},
	{"QPUSH q x UNIQUE u WINDOW 0", `ERR WINDOW: expected a number from 1 to 315360000000, got "0"`},
	{"QPUSH q x UNIQUE u WINDOW", "ERR WINDOW: expected a value behind it"},
	{"QPUSH q x UNIQUE u UNTIL", "ERR UNTIL: expected a value behind it"},
	{"QPUSH q x UNIQUE u UNTIL 5", `ERR UNTIL: expected claim or end, got "5"`},
	{"QPUSH q x UNTIL claim", "ERR UNTIL: expected UNIQUE with it"},
	{"QPUSH q x UNIQUE u UNTIL claim UNTIL end", "ERR UNTIL: expected it once only"},
	{"QPUSH q x UNIQUE u UNTIL end WINDOW 5", "ERR WINDOW, UNTIL: expected one of the two, as a window lasts whatever becomes of the packet"},
	{"QLOAD q x UNIQUE u UNTILCLAIM WINDOW 5", "ERR WINDOW, UNTIL: expected one of the two, as a window lasts whatever becomes of the packet"},
	{"QPUSH q x REPLACE", "ERR REPLACE: expected UNIQUE with it"},
	{"QPUSH q x UNIQUE u REPLACE REPLACE", "ERR REPLACE: expected it once only"},
	{"QPUSH q x UNIQUE u REPLACE y", `ERR unknown option "y": expected one of PRIO, TTL, DELAY, AT, BLOCK, WINDOW, UNTIL, REPLACE, TELL, KEY, PRODUCER, LEASE, META, UNIQUE, TAG`},
	{"QPUSH q x TELL", "ERR TELL: expected UNIQUE with it"},
	{"QPUSH q x WINDOW 5", "ERR WINDOW: expected UNIQUE with it"},
	{"QPUSH q x DELAY 5 AT 5 WINDOW 5", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QPUSH q x DELAY 5 AT 5 TAG a 1 TAG a 1", `ERR TAG: expected each name once, got "a" twice`},
	{"QLOAD q x STATE ready STATE ready", "ERR STATE: expected it once only"},
	{"QMPUSH q 1 x UNIQUE u", `ERR unknown option "UNIQUE": expected one of PRIO, TTL, DELAY, AT, BLOCK, KEY, PRODUCER, LEASE, META, TAG`},
	{"QMPUSH q 0 x", `ERR n: expected a number from 1 to 1000, got "0"`},
	{"QMPUSH q 1001 x", `ERR n: expected a number from 1 to 1000, got "1001"`},
	{"QMPUSH q 9223372036854775808 x", `ERR n: expected a number from 1 to 1000, got "9223372036854775808"`},
	{"QMPUSH q 2 x", "ERR n: expected 2 payloads behind it, got 1"},
	{"QMPUSH q 1 x y", `ERR unknown option "y": expected one of PRIO, TTL, DELAY, AT, BLOCK, KEY, PRODUCER, LEASE, META, TAG`},
	{"QPOP q COUNT 0", `ERR COUNT: expected a number from 1 to 1000, got "0"`},
	{"QPOP q COUNT 1001", `ERR COUNT: expected a number from 1 to 1000, got "1001"`},
	{"QPOP q COUNT 9223372036854775808", `ERR COUNT: expected a number from 1 to 1000, got "9223372036854775808"`},
	{"QPOP q NEWEST OLDEST", "ERR NEWEST, OLDEST: expected one of the two"},
	{"QPOP q GROUP COUNT 2", "ERR GROUP, COUNT: expected one of the two"},
	{"QPOP q COUNT 1 GROUP", "ERR GROUP, COUNT: expected one of the two"},
	{"QPOP q NEWEST COUNT 1 OLDEST GROUP", "ERR NEWEST, OLDEST: expected one of the two"},
	{"QPOP q GROUP GROUP", "ERR GROUP: expected it once only"},
	{"QCLAIM q OLDEST oldest", "ERR OLDEST: expected it once only"},
	{"QPOP q BLOCK -1", `ERR BLOCK: expected a number from 0 to 315360000000, got "-1"`},
	{"QPOP q LEASE 5", `ERR unknown option "LEASE": expected one of OR, COUNT, BLOCK, FILTER, SHARE, MATCH, NEWEST, OLDEST, GROUP`},
	{"QPOP q NEWEST LEASE 5", `ERR unknown option "LEASE": expected one of OR, COUNT, BLOCK, FILTER, SHARE, MATCH, NEWEST, OLDEST, GROUP`},
	{"QPOP q FILTER", "ERR FILTER: expected a tag, an operator and a value behind it"},
	{"QCLAIM q FILTER a eq", "ERR FILTER: expected a tag, an operator and a value behind it"},
	{"QCLAIM q FILTER  eq 1", "ERR FILTER: expected a tag with a name that is not empty"},
	{"QCLAIM q FILTER a = 1", `ERR FILTER: expected the operator to be one of eq, ne, lt, le, gt, ge, got "="`},
	{"QCLAIM q" + strings.Repeat(" FILTER a eq 1", 65), "ERR FILTER: expected at most 64 of them"},
	{"QCLAIM q FILTER a eq {16384}", "ERR FILTER: expected tags and values of at most 16384 bytes together"},
	{"QCLAIM q FILTER a eq {9000} FILTER a ne {9000}", "ERR FILTER: expected tags and values of at most 16384 bytes together"},
	{"QCLAIM q MATCH ALL", "ERR MATCH: expected FILTER with it"},
	{"QCLAIM q MATCH ANY 1", "ERR MATCH: expected FILTER with it"},
	{"QCLAIM q MATCH", "ERR MATCH: expected ALL, or ANY and a number, behind it"},
	{"QCLAIM q FILTER a eq 1 MATCH SOME", "ERR MATCH: expected ALL, or ANY and a number, behind it"},
	{"QCLAIM q FILTER a eq 1 MATCH ANY", "ERR MATCH: expected ALL, or ANY and a number, behind it"},
	{"QCLAIM q FILTER a eq 1 MATCH ANY 0", `ERR MATCH ANY: expected a number from 1 to 64, got "0"`},
	{"QCLAIM q FILTER a eq 1 FILTER b eq 1 MATCH ANY 3", `ERR MATCH ANY: expected a number from 1 to 2, of the FILTERs, got "3"`},
	{"QCLAIM q MATCH ALL FILTER a eq 1 match all", "ERR MATCH: expected it once only"},
	{"QCLAIM q LEASE 0", `ERR LEASE: expected a number from 1 to 315360000000, got "0"`},
	{"QCLAIM q LEASE -30", `ERR LEASE: expected a number from 1 to 315360000000, got "-30"`},
	{"QCLAIM q CONSUMER {256}", "ERR CONSUMER: expected 1 to 255 bytes, got 256"},
	{"QACK q 1", "ERR wrong number of arguments for 'qack' command"},
	{"QACK q 1 1 2", "ERR token: expected one behind each id"},
	{"QACK q x 1", `ERR id: expected the id of a packet, as QPUSH replies with it, got "x"`},
	{"QACK q 1 1 2 0", `ERR token: expected a number from 1 to 9223372036854775807, got "0"`},
	{"QACK q" + strings.Repeat(" 1 1", 1001), "ERR id: expected at most 1000 with their tokens, got 1001"},
	{"QNACK q 1 t", `ERR token: expected a number from 1 to 9223372036854775807, got "t"`},
	{"QNACK q 1 1 DELAY -1", `ERR DELAY: expected a number from 0 to 315360000000, got "-1"`},
	{"QNACK q 1 1 REASON {1000000}", "ERR REASON: expected 0 to 4096 bytes, got 1000000"},
	{"QNACK q 1 1 DEAD AT 5 UNCOUNTED", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QNACK q 1 1 DEAD DEAD", "ERR DEAD: expected it once only"},
	{"QNACK q 1 1 DEAD DELAY 5", "ERR DELAY, AT, DEAD: expected one of them"},
	{"QEXTEND q 1 1 0", `ERR ms: expected a number from 1 to 315360000000, got "0"`},
	{"QEXTEND q 1 1 315360000001", `ERR ms: expected a number from 1 to 315360000000, got "315360000001"`},
	{"QPROGRESS q 1 1 101", `ERR percent: expected a number from 0 to 100, got "101"`},
	{"QPROGRESS q 1 1 5 {4097}", "ERR text: expected 0 to 4096 bytes, got 4097"},
	{"QPROGRESS q 1 1 5 text more", "ERR wrong number of arguments for 'qprogress' command"},
	{"QPEEK q COUNT -1", `ERR COUNT: expected a number from 1 to 1000, got "-1"`},
	{"QLIST q STATE asleep", `ERR STATE: expected ready, delayed, claimed, dead, done or damaged, got "asleep"`},
	{"QLIST q CURSOR 5", `ERR CURSOR: expected one that QLIST replied with, or 0, got "5"`},
	{"QLIST q CURSOR 7:1:1", `ERR CURSOR: expected one that QLIST replied with, or 0, got "7:1:1"`},
	{"QLIST q CURSOR 1:1:1x", `ERR CURSOR: expected one that QLIST replied with, or 0, got "1:1:1x"`},
	{"QLIST q CURSOR 1:1:1 STATE dead", `ERR CURSOR: expected one of a QLIST of this STATE, got "1:1:1"`},
	{"QSHOW q 1.0", `ERR id: expected the id of a packet, as QPUSH replies with it, got "1.0"`},
	{"QDEL q 1 two", `ERR id: expected the id of a packet, as QPUSH replies with it, got "two"`},
	{"QDEL q" + strings.Repeat(" 1", 1001), "ERR id: expected at most 1000, got 1001"},
	{"QCANCEL q 1 two", `ERR id: expected the id of a packet, as QPUSH replies with it, got "two"`},
	{"QCANCEL q" + strings.Repeat(" 1", 1001), "ERR id: expected at most 1000, got 1001"},
	{"QMOVE q 1 2 other", `ERR TO: expected it before the last argument, as QMOVE with ids takes no options, got "2"`},
	{"QMOVE q 1 2 TO other STATE ready", `ERR TO: expected it before the last argument, as QMOVE with ids takes no options, got "STATE"`},
	{"QMOVE q one TO other", `ERR id: expected the id of a packet, as QPUSH replies with it, got "one"`},
	{"QMOVE q TO", "ERR wrong number of arguments for 'qmove' command"},
	{"QMOVE q 1 TO", `ERR TO: expected it before the last argument, as QMOVE with ids takes no options, got "1"`},
	{"QMOVE q TO other 1", `ERR unknown option "1": expected one of COUNT, STATE, SHARE, FILTER, MATCH, DRYRUN`},
	{"QMOVE q TO other STATE ready OLDER 5", `ERR unknown option "OLDER": expected one of COUNT, STATE, SHARE, FILTER, MATCH, DRYRUN`},
	{"QMOVE q TO other MATCH ALL", "ERR MATCH: expected FILTER with it"},
	{"QPRIO q 1 -1", `ERR n: expected a number from 0 to 4294967295, got "-1"`},
	{"QPURGE q STATE", "ERR STATE: expected a value behind it"},
	{"QPURGE q NOW", `ERR unknown option "NOW": expected one of STATE, SHARE, FILTER, MATCH, DRYRUN`},
	{"QHARVEST q OLDER -1", `ERR OLDER: expected a number from 0 to 315360000000, got "-1"`},
	{"QREDRIVE q COUNT 0", `ERR COUNT: expected a number from 1 to 1000, got "0"`},
	{"QSET q", "ERR wrong number of arguments for 'qset' command"},
	{"QSET q lease", "ERR wrong number of arguments for 'qset' command"},
	{"QSET q colour red", `ERR unknown setting "colour": expected one of max-attempts, lease, backoff-min, backoff-max, dead-letter, retain, bound, bound-bytes, full, exclusive-producer, exclusive-consumer, pause-in, pause-out, enum, retain-dead, alert-age, share-by, max-claimed, share-max-claimed, rate, share-rate, rate-burst, bound-share, strict, on-dead`},
	{"QSET q lease 5 retain", "ERR retain: expected a value behind it"},
	{"QSET q max-attempts 65536", `ERR max-attempts: expected a number from 0 to 65535, got "65536"`},
	{"QSET q lease 0", `ERR lease: expected a number from 1 to 315360000000, got "0"`},
	{"QSET q retain 5 lease 1 RETAIN 5", "ERR retain: expected it once only"},
	{"QSET q retain -5", `ERR retain: expected a number from 0 to 315360000000, got "-5"`},
	{"QSET q retain 5 lease never", `ERR lease: expected a number from 1 to 315360000000, got "never"`},
	{"QSET q backoff-min 5000 backoff-max 100", `ERR backoff-min: expected at most backoff-max, which is 100, got "5000"`},
	{"QSET q dead-letter q", "ERR a queue cannot be its own dead-letter queue: packets that die stay in it anyway"},
	{"QSET q dead-letter {65536}", "ERR dead-letter: expected 0 to 65535 bytes, got 65536"},
	{"QSET q bound -1", `ERR bound: expected a number from 0 to 9007199254740992, got "-1"`},
	{"QSET q bound 5 bound-bytes 9007199254740993", `ERR bound-bytes: expected a number from 0 to 9007199254740992, got "9007199254740993"`},
	{"QSET q lease 5 full maybe", `ERR full: expected one of reject, block, drop, got "maybe"`},
	{"QSET q bound 5 exclusive-producer 2", `ERR exclusive-producer: expected yes or no, got "2"`},
	{"QSET q exclusive-consumer oui", `ERR exclusive-consumer: expected yes or no, got "oui"`},
	{"QSET q pause-in ", `ERR pause-in: expected yes or no, got ""`},
	{"QSET q pause-out never", `ERR pause-out: expected yes or no, got "never"`},
	{"QSET q closed yes", "ERR closed: expected QCLOSE, which closes a queue for ever"},
	{"QSET q lease 5 enum", "ERR enum: expected a value behind it"},
	{"QSET q enum class", `ERR enum: expected values behind the tag, from the lowest to the highest, or one empty value, got only "class"`},
	{"QSET q enum  a", "ERR enum: expected a tag that is not empty"},
	{"QSET q lease 5 enum class low high low", `ERR enum: expected each value once, got "low" twice`},
	{"QSET q enum class low ", "ERR enum: expected values that are not empty"},
	{"QSET q enum class {16380}", "ERR enum: expected tags and values of at most 16384 bytes together, got more"},
	{"QSET q enum {16385} a", "ERR enum: expected tags and values of at most 16384 bytes together, got more"},
	{"QACK q 1 1", "STALE no queue has this name: the claim has ended with its last packet, or the name is wrong"},
	{"QNACK q 1 1", "STALE no queue has this name: the claim has ended with its last packet, or the name is wrong"},
	{"QEXTEND q 1 1 1", "STALE no queue has this name: the claim has ended with its last packet, or the name is wrong"},
	{"QPROGRESS q 1 1 1", "STALE no queue has this name: the claim has ended with its last packet, or the name is wrong"},
	{"QGET q", "NOQUEUE no queue has this name: it holds no packets and has no settings"},
	{"QDROP q", "NOQUEUE no queue has this name: it holds no packets and has no settings"},
	{"QSHOW q 1", "NOQUEUE no queue has this name: it holds no packets and has no settings"},
	{"QCONSUMERS q", "NOQUEUE no queue has this name: it holds no packets and has no settings"},
	{"QUEUES *", `ERR unknown option "*": expected MATCH`},
	{"QUEUES MATCH {1025}", "ERR MATCH: expected 0 to 1024 bytes, got 1025"},
}

// refusal returns the failure that reading arguments panics with, "" if it does not.
func refusal(read func()) (why failure) {
	defer func() { why, _ = recover().(failure) }()
	read()
	return ""
}

// wordsOf divides a request at its spaces. A number in braces stands for so many bytes.
func wordsOf(request string) []string {
	words := strings.Split(request, " ")
	for i, w := range words {
		var n int
		if _, err := fmt.Sscanf(w, "{%d}", &n); err == nil {
			words[i] = strings.Repeat("x", n)
		}
	}
	return words
}

func TestBadInputGetsAnErrorThatSaysWhatWasExpected(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for _, bad := range badInput {
		if got := c.line(wordsOf(bad.request)...); got != "-"+bad.reply {
			t.Errorf("%.60s: %q, want %q", bad.request, got, bad.reply)
		}
		c.ask("DBSIZE", ":0\r\n")
	}
}

func TestOptionsMayComeInAnyOrderAndCase(t *testing.T) {
	args := func(request string) (list [][]byte) {
		for _, w := range strings.Split(request, " ") {
			list = append(list, []byte(w))
		}
		return list
	}
	for _, request := range []string{
		"PRIO 4294967295 KEY k TTL 0 DELAY 315360000000 TAG b 2 TAG a 1 PRODUCER p UNIQUE u WINDOW 7",
		"producer p Window 7 unique u tag a 1 Delay 315360000000 TTL 0 tag b 2 key k pRIO 4294967295",
	} {
		var r push
		r.parse(args(request))
		tags := []broker.PacketTag{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}
		got := fmt.Sprintln(r.Priority, string(r.Key), r.TTL, r.Delay, r.Tags, r.Producer, string(r.Unique), r.Window)
		if want := fmt.Sprintln(4294967295, "k", "0s", 315360000000, tags, "p", "u", 7); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	var r push
	if r.parse(nil); r.Priority != 128 || r.Key != nil || r.Tags != nil {
		t.Errorf("without options: %+v", r)
	}
}

func TestOptionsAreReadWithoutAllocating(t *testing.T) {
	pushed := [][]byte{[]byte("PRIO"), []byte("5"), []byte("KEY"), []byte("k"), []byte("DELAY"), []byte("5")}
	claimed := [][]byte{[]byte("QCLAIM"), []byte("q"), []byte("COUNT"), []byte("5"), []byte("CONSUMER"), []byte("w")}
	if n := testing.AllocsPerRun(100, func() {
		var p push
		p.parse(pushed)
		t := take{claims: true}
		t.parse(nil, claimed)
	}); n > 0 {
		t.Errorf("a push and a claim allocate %v times", n)
	}
}

func TestAFilterIsReadWithItsTermsInAnyCase(t *testing.T) {
	for request, want := range map[string]string{
		"OLDEST":                       "<nil>",
		"FILTER a eq 1":                "&{[{a 0 1}] 0 []}",
		"SHARE ab filter a eq 1":       "&{[{a 0 1}] 0 [97 98]}",
		"match all filter eq GE count": "&{[{eq 5 count}] 0 []}",
		"FILTER a ne 1 COUNT 2 filter match LT any MATCH any 2 FILTER a le  FILTER b gt 5": "&{[{a 1 1} {match 2 any} {a 3 } {b 4 5}] 2 []}",
	} {
		args := [][]byte{[]byte("QCLAIM"), []byte("q")}
		for _, w := range wordsOf(request) {
			args = append(args, []byte(w))
		}
		take := take{claims: true, consumer: []byte("w")}
		take.parse(nil, args)
		for _, a := range args {
			clear(a) // a filter outlives the request
		}
		if got := fmt.Sprint(take.selection.Filter); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

func TestOrJoinsTheNamesOfQueues(t *testing.T) {
	d := newDoor(t, Config{})
	s := &session{protocol: d.protocol, client: client{name: "w"}}
	const or, unknown = "ERR OR: expected another queue", "ERR unknown option "
	for request, want := range map[string]string{
		"QPOP a":                             "[a] 0 false",
		"QPOP count":                         "[count] 0 false",
		"QPOP or":                            "[or] 0 false",
		"QPOP a OR b or c COUNT 5":           "[a b c] 5 false",
		"QPOP newest or group Or or count 2": "[newest group or] 2 false",
		"QCLAIM a OR b GROUP block 5":        "[a b] 16384 true",
		"QCLAIM a b":                         unknown + `"b"`,
		"QCLAIM a LEASSE 60000 COUNT 2":      unknown + `"LEASSE"`,
		"QCLAIM a OR b LEASSE 60000":         unknown + `"LEASSE"`,
		"QCLAIM a OR":                        or,
		"QCLAIM a COUNT 2 OR b":              or,
		"QPOP a lease 5":                     unknown, // it would take for good what was to be claimed
		"QPOP a consumer w":                  unknown,
	} {
		var args [][]byte
		for w := range strings.SplitSeq(request, " ") {
			args = append(args, []byte(w))
		}
		var take take
		got := string(refusal(func() { take.parse(s, args) }))
		if got == "" {
			got = fmt.Sprintf("%s %d %t", take.queues, take.selection.Count, take.selection.Group)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

func TestACursorIsReadAsItWasWritten(t *testing.T) {
	for _, p := range []listPlace{
		{broker.Ready, broker.Place{}}, {broker.Done, broker.Place{Priority: 1<<32 - 1, Seq: 1<<64 - 1}}, {broker.Dead, broker.Place{Priority: 7, Seq: 1 << 63}},
	} {
		if got := parseListPlace([]byte(p.String()), broker.Ready); got != p {
			t.Errorf("%v becomes %v", p, got)
		}
	}
	if got := parseListPlace([]byte("0"), broker.Claimed); got != (listPlace{state: broker.Claimed}) {
		t.Errorf("0 becomes %v", got)
	}
}

// A command that is given an option it does not take says which it takes.
func TestTheOptionsOfTheWorkQueueAreThoseOfTheWords(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for command, fixed := range map[string]string{
		"QPUSH": "q x", "QMPUSH": "q 1 x", "QLOAD": "q x", "QPOP": "q", "QCLAIM": "q", "QNACK": "q 1 1", "QPEEK": "q", "QLIST": "q",
		"QMOVE": "q TO other", "QPURGE": "q", "QHARVEST": "q", "QREDRIVE": "q COUNT 1", "QUEUES": "",
	} {
		c.send(request(append(append([]string{command}, strings.Fields(fixed)...), "NOSUCH")...))
		said := c.readLine()
		_, takes, _ := strings.Cut(strings.TrimSpace(said), "expected ")
		got := strings.Split(strings.TrimPrefix(takes, "one of "), ", ")
		var want []string
		for _, g := range words.Commands {
			for _, w := range g.Commands {
				if w.Name == command {
					for _, o := range w.Options() {
						want = append(want, o.Word)
					}
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q takes %v, in the words %v", command, said, got, want)
		}
	}
}
