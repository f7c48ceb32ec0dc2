package resp

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

// maxQueueName is the longest name of a queue, in bytes.
const maxQueueName = 1<<16 - 1

// switchWords are the values of a flag: the second half says no.
var switchWords = []string{"yes", "1", "true", "on", "no", "0", "false", "off"}

// setValue gives a queue the value of a setting that stands at the head of args.
func setValue(q *broker.Settings, k *broker.Setting, args [][]byte) {
	word := func(words []string) int {
		return slices.IndexFunc(words, func(word string) bool { return is(args[0], word) })
	}
	switch at := k.At(q).(type) {
	case *int64:
		*at = numberArg(k.Name, args[0], k.Low, k.High)
	case *bool:
		i := word(switchWords)
		if i < 0 {
			refuse("ERR %s: expected yes or no, got %q", k.Name, quoted(args[0]))
		}
		*at = i < len(switchWords)/2
	case *broker.Choice:
		i := word(k.Words)
		if i < 0 {
			refuse("ERR %s: expected one of %s, got %q", k.Name, strings.Join(k.Words, ", "), quoted(args[0]))
		}
		*at = broker.Choice(i)
	case *[]byte:
		if *at = textArg(k.Name, args[0], 0, maxQueueName); k.None != "" && is(args[0], k.None) {
			*at = nil
		}
		if err := k.Check(*at); len(*at) > 0 && err != nil {
			refuse("ERR %s: %v, got %q", k.Name, err, quoted(args[0]))
		}
	default:
		setOrder(q, args)
	}
}

// show appends the value of a setting.
func (s *session) show(q *broker.Settings, k *broker.Setting) {
	switch at := k.At(q).(type) {
	case *int64:
		s.int(*at)
	case *bool:
		i := 0
		if !*at {
			i = len(switchWords) / 2
		}
		s.bulkString(switchWords[i])
	case *broker.Choice:
		s.bulkString(k.Word(*at))
	case *[]byte:
		if len(*at) == 0 {
			s.bulkString(k.None)
			return
		}
		s.bulk(*at)
	default:
		s.mapHeader(len(q.Orders))
		for _, o := range q.Orders {
			s.bulkString(o.Tag)
			s.array(len(o.Values))
			s.bulkString(o.Values...)
		}
	}
}

// setOrder declares the order of the values of a tag. One empty value ends it.
func setOrder(q *broker.Settings, args [][]byte) {
	tag, values := string(args[0]), args[1:]
	if len(values) == 0 {
		refuse("ERR enum: expected values behind the tag, from the lowest to the highest, or one empty value, got only %q", quoted(args[0]))
	}
	at, declared := slices.BinarySearchFunc(q.Orders, tag, func(o broker.Order, tag string) int { return strings.Compare(o.Tag, tag) })
	orders := slices.Clone(q.Orders) // q shares them with the queue
	if declared {
		orders = slices.Delete(orders, at, at+1)
	}
	if len(values) > 1 || len(values[0]) > 0 {
		order := broker.Order{Tag: tag}
		for _, v := range values {
			order.Values = append(order.Values, string(v))
		}
		orders = slices.Insert(orders, at, order)
	}
	if err := broker.CheckOrders(orders); err != nil {
		refuse("ERR enum: %v", err)
	}
	q.Orders = orders
}

// change gives settings the values that stand behind their names. That of an enum is all that
// follows. It returns true if FORCE stands among the names.
func change(q *broker.Settings, args [][]byte) (force bool) {
	given := make(map[string]bool)
	for len(args) > 0 {
		k := settingOf(args[0])
		switch {
		case is(args[0], words.FORCE.Word) && !force:
			force, args = true, args[1:]
			continue
		case is(args[0], words.FORCE.Word):
			refuse("ERR FORCE: expected it once only")
		case k == nil:
			refuse("ERR unknown setting %q: expected one of %s", quoted(args[0]), settingNames())
		case k.By != "":
			refuse("ERR %s: expected %s", k.Name, k.By)
		case given[k.Name]:
			refuse("ERR %s: expected it once only", k.Name)
		case len(args) < 2:
			refuse("ERR %s: expected a value behind it", k.Name)
		}
		given[k.Name] = true
		setValue(q, k, args[1:])
		switch k.Name {
		case "pause-in":
			q.PauseInUntil = 0
		case "pause-out":
			q.PauseOutUntil = 0
		}
		if args = args[2:]; k.Kind == broker.SettingOrders {
			break
		}
	}
	if q.BackoffMin > q.BackoffMax {
		refuse("ERR backoff-min: expected at most backoff-max, which is %d, got \"%d\"", q.BackoffMax, q.BackoffMin)
	}
	if q.OnDead == broker.DeadHolds && len(q.DeadLetter) > 0 {
		refuse("ERR on-dead: expected go-on beside dead-letter: a packet that dies moves there, and can hold nobody here")
	}
	return force
}

// NewSettings makes settings with changes, each as QSET takes it behind the queue: an enum ends
// one. The error begins with the name of the setting.
func NewSettings(changes [][]string) (q broker.Settings, err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = errors.New(strings.TrimPrefix(string(f), "ERR "))
		default:
			panic(f)
		}
	}()
	q = broker.DefaultSettings()
	was := q
	for _, c := range changes {
		args := make([][]byte, len(c))
		for i := range c {
			args[i] = []byte(c[i])
		}
		if change(&q, args) {
			refuse("ERR unknown setting \"FORCE\": expected one of %s", settingNames())
		}
	}
	needShares(&q, &was)
	return q, nil
}

// needShares refuses a limit of shares, if a queue without shares is to have one that it had not:
// nothing would be limited.
func needShares(q, was *broker.Settings) {
	for _, name := range [...]string{"share-max-claimed", "bound-share", "share-rate"} {
		if k := settingOf([]byte(name)); len(q.ShareBy) == 0 && !k.IsZero(q) && !reflect.DeepEqual(k.At(q), k.At(was)) {
			refuse("ERR %s: expected it beside share-by: the queue has no shares", name)
		}
	}
}

// settingOf returns the row of a setting, nil if there is none of that name.
func settingOf(name []byte) *broker.Setting {
	table := broker.SettingsTable()
	i := slices.IndexFunc(table, func(k broker.Setting) bool { return is(name, k.Name) })
	if i < 0 {
		return nil
	}
	return &table[i]
}

// settingNames are those that QSET changes.
func settingNames() string {
	var names []string
	for _, k := range broker.SettingsTable() {
		if k.By == "" {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

func qset(s *session, tx *broker.Tx, args [][]byte) error {
	q, _, err := tx.Settings(args[1])
	if err != nil {
		return err
	}
	was := q
	set := tx.SetSettings
	if change(&q, args[2:]) {
		if set = tx.ForceSettings; s.inExec {
			refuse("ERR FORCE: expected it outside of MULTI: all wait while packets move")
		}
	}
	needShares(&q, &was)
	if to := q.DeadLetter; len(to) > 0 && !bytes.Equal(to, was.DeadLetter) {
		s.mayPush(to)
	}
	return s.done(set(args[1], q))
}

func qpause(s *session, tx *broker.Tx, args [][]byte) error {
	in, rest := is(args[2], "IN"), args[2:]
	if in {
		rest = rest[1:]
	}
	if len(rest) != 2 || !is(rest[0], "UNTIL") {
		refuse("ERR UNTIL: expected it behind the queue or IN, with the moment at which the pause ends")
	}
	return s.done(tx.Pause(args[1], in, numberArg("UNTIL", rest[1], 0, broker.MaxMoment)))
}

func qshare(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args) == 3 {
		refuse("ERR WEIGHT, MAX-CLAIMED, RATE, HOLD, RESET: expected one of them")
	}
	weight, most, rate, hold, reset := int64(0), int64(0), shareRate(nil), int64(-1), false
	parseOptions(args[3:], option{&words.WEIGHT, &weight}, option{&words.MAXCLAIMED, &most}, option{&words.RATE, &rate}, option{&words.QSHAREHOLD, &hold}, option{&words.RESET, &reset})
	share, err := tx.Share(args[1], args[2])
	if err != nil {
		return err
	}
	if reset {
		share = broker.Share{Name: args[2]}
	}
	if weight > 0 {
		share.Weight = uint32(weight)
	}
	if most > 0 {
		share.MaxClaimed = uint32(most)
	}
	if rate != nil {
		share.Rate = rate
	}
	if hold >= 0 {
		share.HeldUntil, share.HeldBy = tx.Steady()+hold, ""
	}
	return s.done(tx.SetShare(args[1], share))
}

func qget(s *session, tx *broker.Tx, args [][]byte) error {
	q, ok, err := tx.Settings(args[1])
	switch {
	case err != nil:
		return err
	case !ok:
		return broker.ErrUnknownQueue
	}
	table := broker.SettingsTable()
	s.mapHeader(len(table) + 1)
	for i := range table {
		s.bulkString(table[i].Name)
		s.show(&q, &table[i])
	}
	own := switchWords[0]
	if !tx.HasOwnSettings(args[1]) {
		own = switchWords[len(switchWords)/2]
	}
	s.bulkString("own", own)
	return nil
}
