package resp

import (
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/broker"
)

// pubsub is who listens to which channel. Messages are not stored: who does not listen when one is
// published never gets it.
type pubsub struct {
	channels map[string][]*session
	patterns map[string][]*session

	// Scratch of one publish.
	message      []byte
	resp2, resp3 []*broker.Consumer
}

func newPubsub() pubsub {
	return pubsub{channels: make(map[string][]*session), patterns: make(map[string][]*session)}
}

const (
	// maxUnsent is the most bytes that may be on their way to a subscriber; a slower one is cut off.
	maxUnsent = 32 << 20
	// subscriptionOverhead is what a subscription takes besides its name.
	subscriptionOverhead = 128
)

func pubsubCommands() []command {
	const local = flagLocal | flagPubSub | flagChannels
	return []command{
		{name: "subscribe", arity: -2, flags: local, run: subscribe},
		{name: "psubscribe", arity: -2, flags: local, run: psubscribe},
		{name: "unsubscribe", arity: -1, flags: local, run: unsubscribe},
		{name: "punsubscribe", arity: -1, flags: local, run: punsubscribe},
		{name: "publish", arity: 3, flags: flagShows | flagFast | flagChannels, run: publish},
		{name: "pubsub", arity: -2, flags: flagLocal | flagChannels, subs: []command{
			{name: "pubsub|channels", arity: -2, flags: flagLocal | flagChannels, run: listChannels},
			{name: "pubsub|numsub", arity: -2, flags: flagLocal | flagChannels, run: countSubscribers},
			{name: "pubsub|numpat", arity: 2, flags: flagLocal | flagChannels, run: countPatterns},
		}},
	}
}

// subscriptions is how many channels and patterns the session listens to.
func (s *session) subscriptions() int { return len(s.channels) + len(s.patterns) }

func subscribe(s *session, _ *broker.Tx, args [][]byte) error {
	s.listen("subscribe", s.protocol.pubsub.channels, &s.channels, args[1:])
	return nil
}

func psubscribe(s *session, _ *broker.Tx, args [][]byte) error {
	for _, pattern := range args[1:] {
		if len(pattern) > maxPattern {
			return failure(errPattern)
		}
	}
	s.listen("psubscribe", s.protocol.pubsub.patterns, &s.patterns, args[1:])
	return nil
}

// listen adds subscriptions and confirms each, even where replies are switched off.
func (s *session) listen(word string, all map[string][]*session, own *map[string]struct{}, names [][]byte) {
	s.quiet = false
	if *own == nil {
		*own = make(map[string]struct{})
	}
	for _, name := range names {
		if _, ok := (*own)[string(name)]; !ok {
			if !s.protocol.hold(len(name) + subscriptionOverhead) {
				s.error("ERR too many subscriptions: the names of all connections' channels have too many bytes together")
				continue
			}
			(*own)[string(name)] = struct{}{}
			all[string(name)] = append(all[string(name)], s)
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

func unsubscribe(s *session, _ *broker.Tx, args [][]byte) error {
	s.ignore("unsubscribe", s.protocol.pubsub.channels, s.channels, args[1:])
	return nil
}

func punsubscribe(s *session, _ *broker.Tx, args [][]byte) error {
	s.ignore("punsubscribe", s.protocol.pubsub.patterns, s.patterns, args[1:])
	return nil
}

// ignore ends subscriptions, all if no name is given, and confirms each.
func (s *session) ignore(word string, all map[string][]*session, own map[string]struct{}, names [][]byte) {
	s.quiet = false
	if len(names) == 0 {
		for _, name := range slices.Sorted(maps.Keys(own)) {
			names = append(names, []byte(name))
		}
		if len(names) == 0 {
			s.confirm(word, nil)
		}
	}
	for _, name := range names {
		s.drop(all, own, string(name))
		s.confirm(word, name)
	}
}

// drop ends one subscription, if there is one.
func (s *session) drop(all map[string][]*session, own map[string]struct{}, name string) {
	if _, ok := own[name]; !ok {
		return
	}
	delete(own, name)
	s.protocol.held -= len(name) + subscriptionOverhead
	listeners := all[name]
	at := slices.Index(listeners, s)
	if listeners = slices.Delete(listeners, at, at+1); len(listeners) > 0 {
		all[name] = listeners
	} else {
		delete(all, name)
	}
}

// unsubscribeAll ends all subscriptions without a word.
func (s *session) unsubscribeAll() {
	for name := range s.channels {
		s.drop(s.protocol.pubsub.channels, s.channels, name)
	}
	for name := range s.patterns {
		s.drop(s.protocol.pubsub.patterns, s.patterns, name)
	}
}

// publish sends a message to all who listen. It leaves when all is on disk that was done before.
func publish(s *session, tx *broker.Tx, args [][]byte) error {
	p := &s.protocol.pubsub
	channel, text := args[1], args[2]
	n := s.send(tx, p.channels[string(channel)], []byte("message"), channel, text)
	for pattern, listeners := range p.patterns {
		if match([]byte(pattern), channel) {
			n += s.send(tx, listeners, []byte("pmessage"), []byte(pattern), channel, text)
		}
	}
	s.int(int64(n))
	return nil
}

// send sends words to listeners, and returns how many these are. It cuts off who is too slow.
func (s *session) send(tx *broker.Tx, listeners []*session, words ...[]byte) int {
	p := &s.protocol.pubsub
	p.resp2, p.resp3 = p.resp2[:0], p.resp3[:0]
	n := 0
	for _, t := range slices.Clone(listeners) { // kill takes t out
		unsent := t.peer.OutstandingBytes()
		if t == s {
			unsent += int64(len(s.out))
		}
		switch {
		case unsent > maxUnsent:
			t.kill(tx)
			continue
		case t == s: // it is served: its replies are not handed over yet
			s.out = appendPush(s.out, s.resp3, words)
			s.mark = len(s.out)
		case t.resp3:
			p.resp3 = append(p.resp3, t.consumer)
		default:
			p.resp2 = append(p.resp2, t.consumer)
		}
		n++
	}
	p.reply(tx, p.resp2, false, words)
	p.reply(tx, p.resp3, true, words)
	return n
}

func (p *pubsub) reply(tx *broker.Tx, to []*broker.Consumer, resp3 bool, words [][]byte) {
	if len(to) == 0 {
		return
	}
	p.message = appendPush(p.message[:0], resp3, words)
	tx.ReplyAll(to, p.message)
	clear(to)
	if cap(p.message) > keepReplies {
		p.message = nil
	}
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
		s.error(wrongArity("pubsub|channels"))
		return nil
	}
	var found []string
	for name := range s.protocol.pubsub.channels {
		if len(args) < 3 || match(args[2], []byte(name)) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	s.array(len(found))
	for _, name := range found {
		s.bulkString(name)
	}
	return nil
}

func countSubscribers(s *session, _ *broker.Tx, args [][]byte) error {
	s.array(2 * (len(args) - 2)) // in RESP3, too
	for _, name := range args[2:] {
		s.bulk(name)
		s.int(int64(len(s.protocol.pubsub.channels[string(name)])))
	}
	return nil
}

func countPatterns(s *session, _ *broker.Tx, _ [][]byte) error {
	s.int(int64(len(s.protocol.pubsub.patterns)))
	return nil
}
