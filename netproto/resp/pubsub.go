package resp

import (
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
)

// pubsub is who listens to which channel. Messages are not stored: who does not listen when one is
// published never gets it.
type pubsub struct {
	channels map[string]topic
	patterns map[string]topic
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
	listeners []*session
	pattern   *glob.Pattern // nil: a channel
}

// held is about how many bytes one subscription to it takes.
func (t topic) held(name string) int {
	if t.pattern != nil {
		return patternOverhead + compiledByte*len(name)
	}
	return subscriptionOverhead + len(name)
}

func newPubsub() pubsub {
	return pubsub{channels: make(map[string]topic), patterns: make(map[string]topic), behind: make(map[*session]struct{})}
}

const (
	errChannel = "ERR the name of a channel is too long: expected at most 65535 bytes"

	// maxUnsent is the most bytes that may be on their way to a subscriber; a slower one is cut off.
	maxUnsent = 32 << 20
	// maxTold is the most bytes on their way to a subscriber of events; a slower one misses some.
	maxTold = 1 << 20
	// maxChannel is the most bytes of the name of a channel.
	maxChannel = 0xffff
	// subscriptionOverhead is what a subscription takes besides its name. A pattern takes more: it is
	// compiled, and compared with the channel of every message.
	subscriptionOverhead = 128
	patternOverhead      = 2048
	compiledByte         = 32
)

func pubsubCommands() []command {
	const local = flagLocal | flagPubSub | flagChannels
	return []command{
		{name: "subscribe", arity: -2, flags: local, right: access.Look, asks: asksToListen(1), run: subscribe},
		{name: "psubscribe", arity: -2, flags: local, right: access.Look, asks: asksPatterns, run: psubscribe},
		{name: "unsubscribe", arity: -1, flags: local, run: unsubscribe},
		{name: "punsubscribe", arity: -1, flags: local, run: punsubscribe},
		{name: "publish", arity: 3, flags: flagFast | flagChannels, right: access.Push, asks: asksFirst, run: publish},
		{name: "pubsub", arity: -2, flags: flagLocal | flagChannels, subs: []command{
			{name: "pubsub|channels", arity: -2, flags: flagLocal | flagChannels, right: access.Look, asks: asksChannels, run: listChannels},
			{name: "pubsub|numsub", arity: -2, flags: flagLocal | flagChannels, right: access.Look, asks: asksToListen(2), run: countSubscribers},
			{name: "pubsub|numpat", arity: 2, flags: flagLocal | flagChannels, run: countPatterns},
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
	s.listen(tx, "subscribe", s.protocol.pubsub.channels, &s.channels, args[1:], nil)
	return nil
}

func psubscribe(s *session, tx *broker.Tx, args [][]byte) error {
	patterns := make([]*glob.Pattern, len(args)-1)
	for i := range patterns {
		patterns[i] = patternArg(args[i+1])
	}
	s.listen(tx, "psubscribe", s.protocol.pubsub.patterns, &s.patterns, args[1:], patterns)
	return nil
}

// listen adds subscriptions and confirms each, even where replies are switched off. patterns are
// what the names are compiled to, nil for channels.
func (s *session) listen(tx *broker.Tx, word string, all map[string]topic, own *map[string]subscription, names [][]byte, patterns []*glob.Pattern) {
	s.noReply = false
	if *own == nil {
		*own = make(map[string]subscription)
	}
	for i, name := range names {
		if _, ok := (*own)[string(name)]; !ok {
			t := all[string(name)]
			if patterns != nil && t.pattern == nil {
				t.pattern = patterns[i]
			}
			s.peer.Hold(t.held(string(name)))
			(*own)[string(name)] = subscription{database: s.consumer.Database()}
			t.listeners = append(t.listeners, s)
			all[string(name)] = t
			if queue, tails := tailOf(name); tails && patterns == nil {
				tx.Tail(s.consumer.Database(), string(queue), true)
			}
		}
		s.confirm(word, name)
	}
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
	s.ignore(tx, "unsubscribe", s.protocol.pubsub.channels, s.channels, args[1:])
	return nil
}

func punsubscribe(s *session, tx *broker.Tx, args [][]byte) error {
	s.ignore(tx, "punsubscribe", s.protocol.pubsub.patterns, s.patterns, args[1:])
	return nil
}

// ignore ends subscriptions, all if no name is given, and confirms each.
func (s *session) ignore(tx *broker.Tx, word string, all map[string]topic, own map[string]subscription, names [][]byte) {
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
func (s *session) drop(tx *broker.Tx, all map[string]topic, own map[string]subscription, name string) {
	mine, ok := own[name]
	if !ok {
		return
	}
	delete(own, name)
	t := all[name]
	if queue, tails := tailOf([]byte(name)); tails && t.pattern == nil {
		tx.Tail(mine.database, string(queue), false)
	}
	s.peer.Hold(-t.held(name))
	at := slices.Index(t.listeners, s)
	if t.listeners = slices.Delete(t.listeners, at, at+1); len(t.listeners) > 0 {
		all[name] = t
	} else {
		delete(all, name)
	}
}

// unsubscribeAll ends all subscriptions without a word.
func (s *session) unsubscribeAll(tx *broker.Tx) {
	for name := range s.channels {
		s.drop(tx, s.protocol.pubsub.channels, s.channels, name)
	}
	for name := range s.patterns {
		s.drop(tx, s.protocol.pubsub.patterns, s.patterns, name)
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
	var matched []string
	s.steps -= len(p.patterns) + len(p.channels[string(channel)].listeners)
	for pattern, t := range p.patterns {
		if t.pattern.Match(channel, &s.steps) {
			matched = append(matched, pattern)
		}
	}
	if s.steps < 0 {
		return failure(errCostly)
	}
	n := s.send(tx, p.channels[string(channel)].listeners, channel, []byte("message"), channel, text)
	for _, pattern := range matched {
		n += s.send(tx, p.patterns[pattern].listeners, channel, []byte("pmessage"), []byte(pattern), channel, text)
	}
	return s.int(int64(n))
}

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
	kind := byte('*')
	if resp3 {
		kind = '>'
	}
	dst = appendHead(dst, kind, int64(len(words)))
	for _, w := range words {
		dst = appendBulk(dst, w)
	}
	return dst
}

func listChannels(s *session, _ *broker.Tx, args [][]byte) error {
	if len(args) > 3 {
		return failure(wrongArity("pubsub|channels"))
	}
	pattern := []byte("*")
	if len(args) == 3 {
		pattern = args[2]
	}
	return s.matching(pattern, func(take func([]byte)) {
		for _, name := range slices.Sorted(maps.Keys(s.protocol.pubsub.channels)) {
			if !isReserved([]byte(name)) || s.mayListen([]byte(name)) {
				take([]byte(name))
			}
		}
	})
}

func countSubscribers(s *session, _ *broker.Tx, args [][]byte) error {
	s.array(2 * (len(args) - 2)) // in RESP3, too
	for _, name := range args[2:] {
		s.bulk(name)
		s.int(int64(len(s.protocol.pubsub.channels[string(name)].listeners)))
	}
	return nil
}

func countPatterns(s *session, _ *broker.Tx, _ [][]byte) error {
	return s.int(int64(len(s.protocol.pubsub.patterns)))
}
