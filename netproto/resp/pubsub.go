package resp

import (
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// pubsub is who listens to which channel. Messages are not stored: who does not listen when one is
// published never gets it.
type pubsub struct {
	channels topics
	patterns topics
	behind   map[*session]struct{} // those that have missed events
	recent   []broker.Event        // the newest ones for operators
}

// subscription is one of a session to a channel or a pattern.
type subscription struct {
	database uint8 // of the connection, when it subscribed
	missed   int   // events that were left out, which it has to be told
}

// topic is a channel or a pattern that somebody listens to.
type topic struct {
	name      string
	listeners []*session
	pattern   *glob.Pattern // nil: a channel
	slot      int
}

// held is about how many bytes one subscription to it takes.
func (t *topic) held() int {
	if t.pattern != nil {
		return patternOverhead + compiledByte*len(t.name)
	}
	return subscriptionOverhead + len(t.name)
}

// topics are found by their names. A channel stays in its slot, so a look that goes over the slots
// finds all that stay. Patterns leave no slot free: every PUBLISH goes over theirs.
type topics struct {
	byName map[string]*topic
	slots  []*topic
	free   []int // slots without a channel
}

func (a *topics) add(name string, pattern *glob.Pattern) *topic {
	t := &topic{name: name, pattern: pattern, slot: len(a.slots)}
	if n := len(a.free); n > 0 {
		t.slot, a.free = a.free[n-1], a.free[:n-1]
		a.slots[t.slot] = t
	} else {
		a.slots = append(a.slots, t)
	}
	a.byName[name] = t
	return t
}

func (a *topics) remove(t *topic) {
	delete(a.byName, t.name)
	last := len(a.slots) - 1
	switch {
	case len(a.byName) == 0:
		a.slots, a.free = nil, nil
	case t.pattern == nil:
		a.slots[t.slot] = nil
		a.free = append(a.free, t.slot)
	default:
		moved := a.slots[last]
		a.slots[t.slot], moved.slot = moved, t.slot
		a.slots[last] = nil
		a.slots = a.slots[:last]
	}
}

// listeners are those of a name.
func (a *topics) listeners(name []byte) []*session {
	if t := a.byName[string(name)]; t != nil {
		return t.listeners
	}
	return nil
}

func newPubsub() pubsub {
	return pubsub{channels: topics{byName: make(map[string]*topic)}, patterns: topics{byName: make(map[string]*topic)}, behind: make(map[*session]struct{})}
}

const (
	errSubscriptions = "ERR too many subscriptions on one connection: expected at most 65536 channels and patterns, use another connection"
	errNumSub        = "ERR too many channels: expected at most 16384"
	errChannel       = "ERR the name of a channel is too long: expected at most 65535 bytes"

	// maxUnsent is the most bytes that may be on their way to a subscriber; a slower one is cut off.
	maxUnsent = 32 << 20
	// maxTold is the most bytes on their way to a subscriber of events; a slower one misses some.
	maxTold = 1 << 20
	// maxChannel is the most bytes of the name of a channel.
	maxChannel = 0xffff
	// maxSubscriptions is the most channels and patterns of one connection: others wait for their end.
	maxSubscriptions = 1 << 16
	// maxNumSub is the most channels that PUBSUB NUMSUB names.
	maxNumSub = 1 << 14
	// subscriptionOverhead is more than a subscription takes besides its name, if no other connection
	// has it and its own has several: a channel 200 bytes, a tail 290. A pattern takes more: it is
	// compiled, and compared with the channel of every message.
	subscriptionOverhead = 320
	patternOverhead      = 2048
	compiledByte         = 32
)

func pubsubCommands() []command {
	const local = flagLocal | flagPubSub | flagChannels
	return []command{
		{name: "subscribe", flags: local, right: access.Look, asks: asksToListen(1), run: subscribe},
		{name: "psubscribe", flags: local, right: access.Look, asks: asksPatterns, run: psubscribe},
		{name: "unsubscribe", flags: local, run: unsubscribe},
		{name: "punsubscribe", flags: local, run: punsubscribe},
		{name: "publish", flags: flagFast | flagChannels, right: access.Push, asks: asksFirst, run: publish},
		{name: "pubsub", arity: -2, flags: flagLocal | flagChannels, subs: []command{
			{name: "pubsub|channels", flags: flagLocal | flagChannels, right: access.Look, asks: asksChannels, run: listChannels},
			{name: "pubsub|numsub", flags: flagLocal | flagChannels, right: access.Look, asks: asksToListen(2), run: countSubscribers},
			{name: "pubsub|numpat", flags: flagLocal | flagChannels, run: countPatterns},
		}},
	}
}

// subscriptions is how many channels and patterns the session listens to.
func (s *session) subscriptions() int { return len(s.channels) + len(s.patterns) }

func subscribe(s *session, tx *broker.Tx, args [][]byte) error {
	for _, name := range args[1:] {
		_, tails := tailOf(name)
		switch {
		case len(name) > maxChannel+len(tailPrefix), len(name) > maxChannel && !tails:
			return failure(errChannel)
		case isReserved(name) && !tails && string(name) != eventsChannel:
			return failure(errReserved)
		}
	}
	return s.listen(tx, "subscribe", &s.protocol.pubsub.channels, &s.channels, args[1:], nil)
}

func psubscribe(s *session, tx *broker.Tx, args [][]byte) error {
	patterns := make([]*glob.Pattern, len(args)-1)
	for i := range patterns {
		patterns[i] = patternArg(args[i+1])
	}
	return s.listen(tx, "psubscribe", &s.protocol.pubsub.patterns, &s.patterns, args[1:], patterns)
}

// listen adds subscriptions and confirms each, even where replies are switched off. patterns are
// what the names are compiled to, nil for channels.
func (s *session) listen(tx *broker.Tx, word string, all *topics, own *map[string]subscription, names [][]byte, patterns []*glob.Pattern) error {
	fresh := s.subscriptions()
	for _, name := range names {
		if _, ok := (*own)[string(name)]; !ok {
			fresh++
		}
	}
	if fresh > maxSubscriptions {
		return failure(errSubscriptions)
	}
	s.noReply = false
	if *own == nil {
		*own = make(map[string]subscription)
	}
	for i, name := range names {
		if _, ok := (*own)[string(name)]; !ok {
			t := all.byName[string(name)]
			switch {
			case t == nil && patterns != nil:
				t = all.add(string(name), patterns[i])
			case t == nil:
				t = all.add(string(name), nil)
			}
			s.peer.Hold(t.held())
			(*own)[t.name] = subscription{database: s.consumer.Database()}
			t.listeners = append(t.listeners, s)
			if patterns == nil {
				hears(tx, s.consumer.Database(), name, true)
			}
		}
		s.confirm(word, name)
	}
	return nil
}

// confirm tells how many subscriptions there are now. A nil name is none.
func (s *session) confirm(word string, name []byte) {
	s.push(3)
	s.bulkString(word)
	if name == nil {
		s.null()
	} else {
		s.bulk(name)
	}
	s.int(int64(s.subscriptions()))
}

func unsubscribe(s *session, tx *broker.Tx, args [][]byte) error {
	s.ignore(tx, "unsubscribe", &s.protocol.pubsub.channels, s.channels, args[1:])
	return nil
}

func punsubscribe(s *session, tx *broker.Tx, args [][]byte) error {
	s.ignore(tx, "punsubscribe", &s.protocol.pubsub.patterns, s.patterns, args[1:])
	return nil
}

// ignore ends subscriptions, all if no name is given, and confirms each.
func (s *session) ignore(tx *broker.Tx, word string, all *topics, own map[string]subscription, names [][]byte) {
	s.noReply = false
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(own)) {
			names = append(names, []byte(name))
		}
		if len(names) == 0 {
			s.confirm(word, nil)
		}
	}
	for _, name := range names {
		s.drop(tx, all, own, string(name))
		s.confirm(word, name)
	}
}

// drop ends one subscription, if there is one.
func (s *session) drop(tx *broker.Tx, all *topics, own map[string]subscription, name string) {
	mine, ok := own[name]
	if !ok {
		return
	}
	delete(own, name)
	t := all.byName[name]
	if t.pattern == nil {
		hears(tx, mine.database, []byte(name), false)
	}
	s.peer.Hold(-t.held())
	at := slices.Index(t.listeners, s)
	if t.listeners = slices.Delete(t.listeners, at, at+1); len(t.listeners) == 0 {
		all.remove(t)
	}
}

// unsubscribeAll ends all subscriptions without a word.
func (s *session) unsubscribeAll(tx *broker.Tx) {
	for name := range s.channels {
		s.drop(tx, &s.protocol.pubsub.channels, s.channels, name)
	}
	for name := range s.patterns {
		s.drop(tx, &s.protocol.pubsub.patterns, s.patterns, name)
	}
	delete(s.protocol.pubsub.behind, s)
}

// publish sends a message to all who listen, or to nobody if the patterns cost too much. It leaves
// when all is on disk that was done before.
func publish(s *session, tx *broker.Tx, args [][]byte) error {
	p := &s.protocol.pubsub
	channel, text := args[1], args[2]
	switch {
	case len(channel) > maxChannel:
		return failure(errChannel)
	case isReserved(channel):
		return failure(errReserved)
	}
	var matched []*topic
	listeners := p.channels.listeners(channel)
	s.steps -= len(p.patterns.byName) + sendSteps*len(listeners)
	for i := 0; i < len(p.patterns.slots) && s.steps >= 0; i++ {
		if t := p.patterns.slots[i]; t.pattern.Match(channel, &s.steps) {
			matched = append(matched, t)
			s.steps -= sendSteps * len(t.listeners)
		}
	}
	if s.steps < 0 {
		return failure(errCostly)
	}
	n := s.send(tx, listeners, channel, []byte("message"), channel, text)
	for _, t := range matched {
		n += s.send(tx, t.listeners, channel, []byte("pmessage"), []byte(t.name), channel, text)
	}
	return s.int(int64(n))
}

// sendSteps is what a message to a listener costs, in steps of patterns.
const sendSteps = 10

// send sends words to listeners, and returns how many these are. It cuts off who is too slow, and
// who may no longer listen to the channel.
func (s *session) send(tx *broker.Tx, listeners []*session, channel []byte, words ...[]byte) (n int) {
	var m message
	for _, t := range slices.Clone(listeners) { // kill takes t out
		if t.peer.Unsent()+int64(len(t.toSelf)) > maxUnsent || !t.mayListen(channel) {
			t.kill(tx)
			continue
		}
		if t == s { // its reply comes first
			s.toSelf = m.of(s, words...).Append(s.toSelf)
		} else {
			t.peer.Send(m.of(t, words...))
		}
		n++
	}
	return n
}

// message is one that goes to several sessions, in RESP2 and in RESP3.
type message [2]*netproto.Message

// of returns the words as a session gets them. They are those of the first call.
func (m *message) of(t *session, words ...[]byte) *netproto.Message {
	form := &m[0]
	if t.resp3 {
		form = &m[1]
	}
	if *form == nil {
		*form = netproto.NewMessage(appendPush(nil, t.resp3, words))
	}
	return *form
}

func appendPush(dst []byte, resp3 bool, words [][]byte) []byte {
	dst = wire.AppendBegin(dst, resp3, '>', len(words), len(words))
	for _, w := range words {
		dst = wire.AppendBulk(dst, w)
	}
	return dst
}

func listChannels(s *session, tx *broker.Tx, args [][]byte) error {
	if len(args) > 3 {
		return failure(wrongArity("pubsub|channels"))
	}
	pattern := []byte("*")
	if len(args) == 3 {
		pattern = args[2]
	}
	g, l, all := patternArg(pattern), &s.look, &s.protocol.pubsub.channels
	err := s.inSlices(func() (bool, error) {
		n := 0
		for ; l.cursor < uint64(len(all.slots)) && !s.sliceFull(n); l.cursor++ {
			n++
			t := all.slots[l.cursor]
			if t != nil && (!isReserved([]byte(t.name)) || s.mayListen([]byte(t.name))) && g.Match([]byte(t.name), &s.steps) {
				s.bulkString(t.name)
				l.found++
			}
		}
		if tx.Looked(n); s.steps < 0 {
			return false, failure(errCostly)
		}
		return l.cursor < uint64(len(all.slots)), nil
	})
	l.head = wire.AppendHead(nil, '*', int64(l.found))
	return err
}

func countSubscribers(s *session, _ *broker.Tx, args [][]byte) error {
	if len(args)-2 > maxNumSub {
		return failure(errNumSub)
	}
	s.array(2 * (len(args) - 2)) // in RESP3, too
	for _, name := range args[2:] {
		s.bulk(name)
		s.int(int64(len(s.protocol.pubsub.channels.listeners(name))))
	}
	return nil
}

func countPatterns(s *session, _ *broker.Tx, _ [][]byte) error {
	return s.int(int64(len(s.protocol.pubsub.patterns.byName)))
}
