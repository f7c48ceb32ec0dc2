package resp

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
)

// setting is one of a queue's.
type setting struct {
	name string
	rest bool // its value is all arguments that follow
	set  func(q *broker.Settings, value [][]byte) error
	show func(s *session, q *broker.Settings)
}

// maxQueueName is the longest name of a queue, in bytes.
const maxQueueName = 1<<16 - 1

var queueSettings = []setting{
	{name: "max-attempts", set: func(q *broker.Settings, value [][]byte) error {
		n, err := numberArg("max-attempts", value[0], 0, math.MaxUint16)
		q.MaxAttempts = uint32(n)
		return err
	}, show: func(s *session, q *broker.Settings) { s.int(int64(q.MaxAttempts)) }},
	numberSetting("lease", 1, broker.MaxTime, func(q *broker.Settings) *int64 { return &q.Lease }),
	numberSetting("backoff-min", 0, broker.MaxTime, func(q *broker.Settings) *int64 { return &q.BackoffMin }),
	numberSetting("backoff-max", 0, broker.MaxTime, func(q *broker.Settings) *int64 { return &q.BackoffMax }),
	{name: "dead-letter", set: func(q *broker.Settings, value [][]byte) error {
		q.DeadLetter = value[0]
		return checkText("dead-letter", value[0], 0, maxQueueName)
	}, show: func(s *session, q *broker.Settings) { s.bulk(q.DeadLetter) }},
	numberSetting("retain", 0, broker.MaxTime, func(q *broker.Settings) *int64 { return &q.Retain }),
	numberSetting("bound", 0, broker.MaxBound, func(q *broker.Settings) *int64 { return &q.Bound }),
	numberSetting("bound-bytes", 0, broker.MaxBound, func(q *broker.Settings) *int64 { return &q.BoundBytes }),
	{name: "full", set: setFull, show: func(s *session, q *broker.Settings) { s.bulkString(q.Full.String()) }},
	switchSetting("exclusive-producer", func(q *broker.Settings) *bool { return &q.ExclusiveProducer }),
	switchSetting("exclusive-consumer", func(q *broker.Settings) *bool { return &q.ExclusiveConsumer }),
	switchSetting("pause-in", func(q *broker.Settings) *bool { return &q.PauseIn }),
	switchSetting("pause-out", func(q *broker.Settings) *bool { return &q.PauseOut }),
	{name: "enum", rest: true, set: setOrder, show: showOrders},
}

func numberSetting(name string, low, high int64, of func(q *broker.Settings) *int64) setting {
	return setting{name: name, set: func(q *broker.Settings, value [][]byte) (err error) {
		*of(q), err = numberArg(name, value[0], low, high)
		return err
	}, show: func(s *session, q *broker.Settings) { s.int(*of(q)) }}
}

func switchSetting(name string, of func(q *broker.Settings) *bool) setting {
	return setting{name: name, set: func(q *broker.Settings, value [][]byte) error {
		*of(q) = is(value[0], "yes")
		if !*of(q) && !is(value[0], "no") {
			return failure(fmt.Sprintf("ERR %s: expected yes or no, got %q", name, quoted(value[0])))
		}
		return nil
	}, show: func(s *session, q *broker.Settings) { s.yesNo(*of(q)) }}
}

func (s *session) yesNo(yes bool) {
	if yes {
		s.bulkString("yes")
	} else {
		s.bulkString("no")
	}
}

func setFull(q *broker.Settings, value [][]byte) error {
	for full := broker.FullReject; full <= broker.FullDrop; full++ {
		if is(value[0], full.String()) {
			q.Full = full
			return nil
		}
	}
	return failure(fmt.Sprintf("ERR full: expected reject, block or drop, got %q", quoted(value[0])))
}

// setOrder declares the order of the values of a tag. One empty value ends it.
func setOrder(q *broker.Settings, args [][]byte) error {
	tag, values := string(args[0]), args[1:]
	if len(values) == 0 {
		return failure(fmt.Sprintf("ERR enum: expected values behind the tag, from the lowest to the highest, or one empty value, got only %q", quoted(args[0])))
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
		return failure("ERR enum: " + err.Error())
	}
	q.Orders = orders
	return nil
}

func showOrders(s *session, q *broker.Settings) {
	s.mapHeader(len(q.Orders))
	for _, o := range q.Orders {
		s.bulkString(o.Tag)
		s.array(len(o.Values))
		for _, v := range o.Values {
			s.bulkString(v)
		}
	}
}

// change gives settings the values that stand behind their names.
func change(q *broker.Settings, args [][]byte) error {
	given := make(map[string]bool)
	for len(args) > 0 {
		i := slices.IndexFunc(queueSettings, func(k setting) bool { return is(args[0], k.name) })
		switch {
		case is(args[0], "closed"):
			return failure("ERR closed: expected QCLOSE, which closes a queue for ever")
		case i < 0:
			return failure(fmt.Sprintf("ERR unknown setting %q: expected one of %s", quoted(args[0]), settingNames()))
		}
		k := &queueSettings[i]
		switch {
		case given[k.name]:
			return failure(fmt.Sprintf("ERR %s: expected it once only", k.name))
		case len(args) < 2:
			return failure(fmt.Sprintf("ERR %s: expected a value behind it", k.name))
		}
		given[k.name] = true
		end := 2
		if k.rest {
			end = len(args)
		}
		if err := k.set(q, args[1:end]); err != nil {
			return err
		}
		args = args[end:]
	}
	if q.BackoffMin > q.BackoffMax {
		return failure(fmt.Sprintf("ERR backoff-min: expected at most backoff-max, which is %d, got \"%d\"", q.BackoffMax, q.BackoffMin))
	}
	return nil
}

func settingNames() string {
	names := make([]string, len(queueSettings))
	for i, k := range queueSettings {
		names[i] = k.name
	}
	return strings.Join(names, ", ")
}

// settingArgs returns the settings of a queue as QSET changes them.
func settingArgs(tx *broker.Tx, args [][]byte) (broker.Settings, error) {
	q, _, err := tx.Settings(args[1])
	if err == nil {
		err = change(&q, args[2:])
	}
	return q, err
}

func qset(s *session, tx *broker.Tx, args [][]byte) error {
	q, err := settingArgs(tx, args)
	if err != nil {
		return err
	}
	if err := tx.SetSettings(args[1], q); err != nil {
		return err
	}
	s.ok()
	return nil
}

func qsetRoom(_ *session, tx *broker.Tx, args [][]byte) broker.Room {
	q, err := settingArgs(tx, args)
	if err != nil {
		return broker.Room{}
	}
	return broker.SettingsRoom(args[1], q)
}

// settingsBytes is at least what the settings of a queue, if a name is one's, take when it changes.
func settingsBytes(tx *broker.Tx, name []byte) int {
	q, _, _ := tx.Settings(name) // the defaults, or none, where it has none
	return broker.SettingsRoom(nil, q).Bytes
}

func qget(s *session, tx *broker.Tx, args [][]byte) error {
	q, ok, err := tx.Settings(args[1])
	switch {
	case err != nil:
		return err
	case !ok:
		return broker.ErrUnknownQueue
	}
	s.mapHeader(len(queueSettings) + 1)
	for _, k := range queueSettings {
		s.bulkString(k.name)
		k.show(s, &q)
	}
	s.bulkString("closed")
	s.yesNo(q.Closed)
	return nil
}
