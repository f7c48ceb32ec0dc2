package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// Queues returns the names of the queues that match a pattern, such as mail.*; all if it is empty.
func (c *Client) Queues(ctx context.Context, pattern string) ([]string, error) {
	args := []any{"QUEUES"}
	if pattern != "" {
		args = append(args, "MATCH", pattern)
	}
	v, err := c.do(ctx, args...)
	names := texts(v)
	slices.Sort(names)
	return names, err
}

// Info returns what the server tells of itself: the fields of INFO by name.
func (c *Client) Info(ctx context.Context) (map[string]string, error) {
	v, err := c.do(ctx, "INFO")
	text, _ := v.(string)
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, err
}

// Connections returns the connections of Redis clients, each with the fields of CLIENT LIST by
// their names. A user that may not operate gets those of its own.
func (c *Client) Connections(ctx context.Context) (all []map[string]string, err error) {
	v, err := c.do(ctx, "CLIENT", "LIST")
	for line := range strings.Lines(text(v)) {
		one := make(map[string]string)
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			one[name] = value
		}
		all = append(all, one)
	}
	return all, err
}

// User is a user of the server.
type User struct {
	Name    string
	Off     bool // it may not log in
	Open    bool // anybody is this user, without a login
	Operate bool // it has the right that is of no queue
	Grants  []Grant
}

// Grant is rights for the queues and other names that a pattern matches.
type Grant struct {
	Pattern string   `json:"pattern"`
	Rights  []string `json:"rights"` // push, take, look, manage
}

// Users returns the users of the server. It needs the right operate.
func (c *Client) Users(ctx context.Context) (all []User, err error) {
	v, err := c.do(ctx, "ACL", "LIST")
	for _, line := range texts(v) {
		head, grants, _ := strings.Cut(line, " (~")
		name, rules, _ := strings.Cut(strings.TrimPrefix(head, "user "), " ")
		u := User{Name: name, Off: strings.HasPrefix(rules, "off"), Open: strings.Contains(rules, "nopass"), Operate: strings.HasSuffix(rules, "+@operate")}
		for grant := range strings.SplitSeq(grants, " (~") {
			if pattern, rules, ok := strings.Cut(strings.TrimSuffix(grant, ")"), " &"); ok {
				_, rights, _ := strings.Cut(rules, "-@all +@")
				u.Grants = append(u.Grants, Grant{pattern, strings.Split(rights, " +@")})
			}
		}
		all = append(all, u)
	}
	return all, err
}

// Len is how many packets of a queue are ready, delayed or claimed: 0 if there is no such queue.
func (c *Client) Len(ctx context.Context, queue string) (int64, error) {
	return count(c.do(ctx, "QLEN", queue))
}

// Peek returns up to n packets that would be taken next, in order: n is 1 to 1,000.
func (c *Client) Peek(ctx context.Context, queue string, n int) ([]*Packet, error) {
	return c.packets(c.do(ctx, "QPEEK", queue, "COUNT", n))
}

// listPage is how many packets List asks for at once.
const listPage = 100

// List goes through the packets of a queue, state by state, page by page. It takes InState and
// filters. It ends after an error.
func (c *Client) List(ctx context.Context, queue string, options ...Option) iter.Seq2[*Packet, error] {
	return func(yield func(*Packet, error) bool) {
		args, err := arguments(options, "QLIST", queue)
		for cursor := any("0"); err == nil; {
			var page any
			cursor, page, err = pair(c.do(ctx, append(args[:len(args):len(args)], "COUNT", listPage, "CURSOR", cursor)...))
			packets, failed := c.packets(page, err)
			for _, p := range packets {
				if !yield(p, nil) {
					return
				}
			}
			if err = failed; err == nil && text(cursor) == "0" {
				return
			}
		}
		yield(nil, err)
	}
}

// Show returns a packet with all that is known of it, and why it is not delivered now. The error is
// ErrNoPacket if the queue does not have it.
func (c *Client) Show(ctx context.Context, queue, id string) (*Packet, error) {
	v, err := c.do(ctx, "QSHOW", queue, id)
	switch {
	case isNull(err):
		return nil, fmt.Errorf("%w: %s in %s", ErrNoPacket, id, queue)
	case err != nil:
		return nil, err
	}
	return c.packet(v), nil
}

// Purge deletes packets in any state, claimed ones too. InState limits it to one state, and filters
// to what they select. Purge, Harvest, Redrive and MoveAll return how many packets they changed, or
// with DryRun would change. They work in slices, and others are served in between; after an error a
// part may be done.
func (c *Client) Purge(ctx context.Context, queue string, options ...Option) (int64, error) {
	return c.bulk(ctx, options, "QPURGE", queue)
}

// Harvest ends claims: their packets are ready again. It takes Older, As and filters.
func (c *Client) Harvest(ctx context.Context, queue string, options ...Option) (int64, error) {
	return c.bulk(ctx, options, "QHARVEST", queue)
}

// Redrive makes dead packets ready again, with no attempts. It takes Count, To and filters.
func (c *Client) Redrive(ctx context.Context, queue string, options ...Option) (int64, error) {
	return c.bulk(ctx, options, "QREDRIVE", queue)
}

// RedrivePacket makes a dead packet ready again, with no attempts. The error is ErrNoPacket if the
// queue has none with this id that is dead.
func (c *Client) RedrivePacket(ctx context.Context, queue, id string) error {
	n, err := count(doOnce(ctx, c.rdb, []any{"QREDRIVE", queue, id}))
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %s in %s is not there, or not dead", ErrNoPacket, id, queue)
	}
	return err
}

// MoveAll moves packets to another queue, but for claimed ones. It takes InState, Count and
// filters.
func (c *Client) MoveAll(ctx context.Context, queue, to string, options ...Option) (int64, error) {
	return c.bulk(ctx, options, "QMOVE", queue, "TO", to)
}

func (c *Client) bulk(ctx context.Context, options []Option, command ...any) (int64, error) {
	args, err := arguments(options, command...)
	if err != nil {
		return 0, err
	}
	return count(doOnce(ctx, c.rdb.WithTimeout(-1), args))
}

// Move moves packets to another queue, with id, priority, age and state. It returns how many:
// claimed ones stay.
func (c *Client) Move(ctx context.Context, queue, to string, ids ...string) (int64, error) {
	return count(doOnce(ctx, c.rdb, append(with("QMOVE", queue, ids), "TO", to)))
}

// Delete deletes packets, and returns how many there were.
func (c *Client) Delete(ctx context.Context, queue string, ids ...string) (int64, error) {
	return count(doOnce(ctx, c.rdb, with("QDEL", queue, ids)))
}

// Cancel has packets not be worked on, and says of each what it did: "gone" if it waited, "told" if
// it is claimed, and "" if it is not there or has ended. The handler of one that is told gets
// ErrCancelled as the cause of its context's end when its lease is renewed next; the packet is gone
// when its claim ends, whatever the handler returns.
func (c *Client) Cancel(ctx context.Context, queue string, ids ...string) ([]string, error) {
	v, err := doOnce(ctx, c.rdb, with("QCANCEL", queue, ids))
	return texts(v), err
}

// SetPriority changes the priority of a packet. The error is ErrNoPacket if the queue does not have
// it.
func (c *Client) SetPriority(ctx context.Context, queue, id string, priority uint32) error {
	return c.change(ctx, "QPRIO", queue, id, priority)
}

// Reschedule has a packet that waits be ready at a moment; the zero time is now. The error is
// ErrNoPacket if the queue does not have it, or it is claimed or has ended.
func (c *Client) Reschedule(ctx context.Context, queue, id string, at time.Time) error {
	return c.change(ctx, "QRUN", queue, id, "AT", max(0, at.UnixMilli()))
}

// RescheduleIn is Reschedule for a while from now, by the clock of the server.
func (c *Client) RescheduleIn(ctx context.Context, queue, id string, d time.Duration) error {
	return c.change(ctx, "QRUN", queue, id, "DELAY", milliseconds(d))
}

// change sends a command for one packet. The error is ErrNoPacket if it found none.
func (c *Client) change(ctx context.Context, command, queue, id string, words ...any) error {
	n, err := count(c.do(ctx, append([]any{command, queue, id}, words...)...))
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: %s in %s", ErrNoPacket, id, queue)
	}
	return err
}

// Drop ends a queue with its packets, claimed ones too, and its settings.
func (c *Client) Drop(ctx context.Context, queue string) error {
	_, err := doOnce(ctx, c.rdb, []any{"QDROP", queue})
	return err
}

// CloseQueue has a queue take no more packets, for ever. Once it is drained, Consume and Claims
// end. It returns false if the queue was closed before.
func (c *Client) CloseQueue(ctx context.Context, queue string) (bool, error) {
	n, err := count(doOnce(ctx, c.rdb, []any{"QCLOSE", queue}))
	return n == 1, err
}

// Set changes settings of a queue, pairs of names and values: all or none. It makes the queue. A
// value is a text, a number, a bool or a time.Duration. A []string is as many texts. "FORCE" in
// place of a pair lets more than 10,000 packets move, for share-by or strict.
func (c *Client) Set(ctx context.Context, queue string, settings ...any) error {
	args := []any{"QSET", queue}
	for _, v := range settings {
		switch v := v.(type) {
		case time.Duration:
			args = append(args, milliseconds(v))
		case []string:
			for _, text := range v {
				args = append(args, text)
			}
		default:
			args = append(args, v)
		}
	}
	_, err := c.do(ctx, args...)
	return err
}

// Get returns the settings of a queue by name. The order of the values of a tag is the setting
// "enum TAG", with commas between them. Times are milliseconds.
func (c *Client) Get(ctx context.Context, queue string) (map[string]string, error) {
	v, err := c.do(ctx, "QGET", queue)
	settings := make(map[string]string)
	for name, v := range fields(v) {
		if name != "enum" {
			settings[name] = text(v)
			continue
		}
		for tag, values := range fields(v) {
			settings["enum "+tag] = strings.Join(texts(values), ",")
		}
	}
	return settings, err
}

// Gate is what a pause of a queue stops.
type Gate string

// The gates.
const (
	Takes  Gate = "pause-out" // unless another one is given
	Pushes Gate = "pause-in"
)

// Pause has a queue give nothing, or take no pushes, until Resume. It makes the queue.
func (c *Client) Pause(ctx context.Context, queue string, gates ...Gate) error {
	return c.setGates(ctx, queue, gates, "yes")
}

// PauseUntil is Pause up to a moment, by the clock of the server. One that is past ends a pause.
func (c *Client) PauseUntil(ctx context.Context, queue string, until time.Time, gates ...Gate) (err error) {
	for _, g := range orTakes(gates) {
		request := []any{"QPAUSE", queue}
		if g == Pushes {
			request = append(request, "IN")
		}
		if _, err = c.do(ctx, append(request, "UNTIL", max(0, until.UnixMilli()))...); err != nil {
			break
		}
	}
	return err
}

// Resume ends the pause of a queue.
func (c *Client) Resume(ctx context.Context, queue string, gates ...Gate) error {
	return c.setGates(ctx, queue, gates, "no")
}

func (c *Client) setGates(ctx context.Context, queue string, gates []Gate, paused string) error {
	var settings []any
	for _, g := range orTakes(gates) {
		settings = append(settings, string(g), paused)
	}
	return c.Set(ctx, queue, settings...)
}

func orTakes(gates []Gate) []Gate {
	if len(gates) == 0 {
		return []Gate{Takes}
	}
	return gates
}

// Consumer is who takes packets from a queue. The fields are in the order of words.ConsumerFields.
type Consumer struct {
	Name    string
	Seen    time.Time // when it last made a call; zero if it has never claimed
	Claimed int64     // how many packets it holds
	Since   time.Time // since when; zero if it holds none
	IDs     []string  // of up to 100 of them
	Waiting []Wait    // up to 100 of its requests that wait
}

// Wait says what a consumer waits for.
type Wait struct {
	Queues []string `json:"queues"`
	Filter []string `json:"filter"` // in the words of the request; empty: any packet
}

// Consumers returns who claims packets of a queue, or waits for them.
func (c *Client) Consumers(ctx context.Context, queue string) ([]Consumer, error) {
	v, err := c.do(ctx, "QCONSUMERS", queue)
	return rows[Consumer](v, words.ConsumerFields[:]), err
}

// Pusher is who pushes packets to a queue. The fields are in the order of words.ProducerFields.
type Pusher struct {
	Name       string
	Seen       time.Time // when it last pushed
	Pushed     int64     // how many packets, since it is listed
	Connection int64     // the id of the connection that did it last; 0: it is gone, or of another protocol
	User       string    // of that connection
}

// Producers returns who pushed packets to the queue in the last ten minutes.
func (c *Client) Producers(ctx context.Context, queue string) ([]Pusher, error) {
	v, err := c.do(ctx, "QPRODUCERS", queue)
	return rows[Pusher](v, words.ProducerFields[:]), err
}

// Share is one share of a queue: the packets with one key, or with one value of a tag, as its
// setting share-by says. The fields are in the order of words.ShareFields.
type Share struct {
	Name    string // that key or value; empty: the packets without one
	Ready   int64  // packets
	Claimed int64
	Age     time.Duration // since the oldest that is ready was pushed; 0 if there is none
	Weight  int64         // of SetShare; 1 unless given

	MaxClaimed int64 // of SetShare; 0: the setting share-max-claimed holds

	Rate  string        // of SetShare; empty: the setting share-rate holds
	Rests time.Duration // for how long it still gives nothing, after Hold or Rest

	Why   string    // what keeps it from giving packets to claims, in words; empty: nothing does
	Until time.Time // when that ends by itself; the zero time if that is not known
}

// Shares returns the shares of a queue, those first with something of their own.
func (c *Client) Shares(ctx context.Context, queue string) (all []Share, err error) {
	for after := any("0"); err == nil; {
		var page any
		after, page, err = pair(c.do(ctx, "QSHARES", queue, "AFTER", after, "COUNT", 1000))
		all = append(all, rows[Share](page, words.ShareFields[:])...)
		if text(after) == "0" {
			break
		}
	}
	return all, err
}

// SetShare says what one share of a queue has of its own: it takes Weight, MaxClaimed, Rate and
// Rest, all or none of them, and what is not given stays. The share need not exist.
func (c *Client) SetShare(ctx context.Context, queue, share string, options ...Option) error {
	args, err := arguments(options, "QSHARE", queue, share)
	if err == nil {
		_, err = c.do(ctx, args...)
	}
	return err
}

// ResetShare forgets what one share of a queue has of its own.
func (c *Client) ResetShare(ctx context.Context, queue, share string) error {
	_, err := c.do(ctx, "QSHARE", queue, share, "RESET")
	return err
}

func wait(v any) Wait {
	m := maps.Collect(fields(v))
	return Wait{texts(m["queues"]), texts(m["filter"])}
}

// with is a command for a queue, with words behind it.
func with(command, queue string, words []string) []any {
	args := []any{command, queue}
	for _, word := range words {
		args = append(args, word)
	}
	return args
}

func count(v any, err error) (int64, error) { return number(v), err }
