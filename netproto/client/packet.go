package client

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/words"
)

// State is the state of a packet.
type State string

// The states of a packet.
const (
	StateReady   State = "ready"   // a take gets it
	StateDelayed State = "delayed" // it waits for its time
	StateClaimed State = "claimed" // a consumer has it
	StateDead    State = "dead"    // it failed too often, or for good
	StateDone    State = "done"    // it was acknowledged, in a queue with the setting retain
	StateDamaged State = "damaged" // the server cannot read it from the disk
	StateExpired State = "expired" // Nack says so of a packet whose time was over: it is gone

	StateCancelled State = "cancelled" // Nack says so of a packet that Cancel has cancelled: it is gone
)

// Packet is a packet as the server shows it. Fields that do not apply are zero. The first ones are
// in the order of words.PacketFields.
type Packet struct {
	ID          string // stays the same through claims, returns, death and moves
	Queue       string
	Payload     []byte
	Priority    uint32 // 1 is best
	Attempt     int    // how many times it was claimed
	Key         []byte // of its group; nil without one
	Tags        map[string]string
	Producer    string        // who pushed it, if that was said
	Lease       time.Duration // how long a claim without a [Lease] lasts, if the push said so
	Meta        []byte        // what was pushed beside the payload; nil if nothing was
	Unique      string        // the id of a Unique push without Window
	Enqueued    time.Time     // when it was pushed
	Expires     time.Time     // when it goes, unless it is claimed then
	NotBefore   time.Time     // when a delayed one becomes ready
	Token       int64         // of its claim; tokens rise over the whole store
	LeaseEnd    time.Time     // when its claim ends by itself
	Cancelled   bool          // it is claimed, and gone when the claim ends
	Consumer    string        // who claimed it last
	State       State         // empty for one that Pop took
	Reason      string        // why it came back or died, the last time
	ErrorClass  string        // which kind of error that is: what the reason says before its first colon
	Died        time.Time     // when a dead one died
	Percent     int           // how far its consumer has come; -1 if it does not say
	PercentText string
	Origin      string    // the queue where it died, if that has a dead-letter queue
	FirstClaim  time.Time // of Show, as all that follow
	LastClaim   time.Time
	Behind      int    // how many packets come before it; -1 if it is not in line
	Why         string // why it is not delivered now

	// Cost may be set before the packet is acknowledged or returned, as by a handler: the rates of its
	// queue and share count the claim as so many takes, up to a million. 0 is 1.
	Cost int64

	c        *Client
	answered atomic.Bool // acknowledged or returned
}

// Claimed names a packet that was claimed before, so that it can be acknowledged or returned.
func (c *Client) Claimed(queue, id string, token int64) *Packet {
	return &Packet{Queue: queue, ID: id, Token: token, State: StateClaimed, Percent: -1, Behind: -1, c: c}
}

// Ack ends the packet: it is done. An error that is ErrStale says that the claim has ended before.
// Ack is repeated when the connection is lost. So after that ErrStale may also mean success.
func (p *Packet) Ack(ctx context.Context) error {
	_, err := p.answer(ctx, ack(p))
	return err
}

// Nack returns the packet, as the error of a handler does: it is delivered again after the queue's
// backoff, or dead if it was the last attempt; [Dead], [RetryIn] and [Snooze] say otherwise. The
// error's text is kept as the reason, up to 4,096 bytes; nil gives none. Nack returns the new
// state. What Ack says about ErrStale holds here too.
func (p *Packet) Nack(ctx context.Context, why error) (State, error) {
	return p.answer(ctx, nack(p, judge(why)))
}

// answer ends the claim.
func (p *Packet) answer(ctx context.Context, request []any) (State, error) {
	v, err := p.c.do(ctx, request...)
	if err != nil {
		return "", err
	}
	p.answered.Store(true)
	state, _ := v.(string)
	return State(state), nil
}

// Extend has the lease end so long from now: for what Claim brought, as Consume does it by itself.
// The error is ErrStale if the claim has ended, and ErrCancelled if the packet was cancelled.
func (p *Packet) Extend(ctx context.Context, d time.Duration) error {
	v, err := p.c.do(ctx, "QEXTEND", p.Queue, p.ID, p.Token, milliseconds(d))
	if err == nil {
		p.LeaseEnd = moment(v)
	}
	return err
}

// Progress says how far the work has come, for all who look at the packet: in percent, 0 to 100,
// and in words, of which 4,096 bytes are kept. The error is ErrStale if the claim has ended.
func (p *Packet) Progress(ctx context.Context, percent int, text string) error {
	_, err := p.c.do(ctx, "QPROGRESS", p.Queue, p.ID, p.Token, percent, cut(text))
	return err
}

func (p *Packet) log() *slog.Logger { return p.c.log().With("queue", p.Queue, "id", p.ID) }

// maxReason is the most bytes of a reason.
const maxReason = 4096

func cut(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") // half a letter at the end
}

// packets reads an array of packets, or the null for none.
func (c *Client) packets(v any, err error) ([]*Packet, error) {
	_, ok := v.([]any)
	switch {
	case isNull(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !ok:
		return nil, unexpected(v)
	}
	return list(v, c.packet), nil
}

func (c *Client) packet(v any) *Packet {
	p := &Packet{Percent: -1, Behind: -1, c: c}
	readInto(p, v, packetPlaces)
	return p
}

var packetPlaces = placesOf(words.PacketFields[:])

// placesOf are the places in a table, by the names of its fields.
func placesOf(table []words.Field) map[string]int {
	all := make(map[string]int)
	for i, f := range table {
		all[f.Name] = i
	}
	return all
}

// rows reads an array of maps into structs whose fields are in the order of a table.
func rows[T any](v any, table []words.Field) []T {
	places := placesOf(table)
	return list(v, func(v any) (one T) {
		readInto(&one, v, places)
		return one
	})
}

// readInto reads a map into the fields of a struct, by their places.
func readInto(s, v any, places map[string]int) {
	for name, v := range fields(v) {
		if i, ok := places[name]; ok {
			read(fieldAt(s, i), v)
		}
	}
}

// fieldAt points to the field of a struct at a place.
func fieldAt(s any, i int) any { return reflect.ValueOf(s).Elem().Field(i).Addr().Interface() }

// Fields are the fields that apply, by their places in words.PacketFields. Each is a string, an
// int64, bytes, a time, tags, a duration, or true.
func (p *Packet) Fields() iter.Seq2[int, any] {
	return func(yield func(int, any) bool) {
		for i := range words.PacketFields {
			if v := valueOf(fieldAt(p, i)); v != nil && !yield(i, v) {
				return
			}
		}
	}
}

// valueOf returns the value of a field, nil if it does not apply.
func valueOf(field any) any {
	switch f := field.(type) {
	case *int:
		if *f < 0 {
			return nil
		}
		return int64(*f)
	case *uint32:
		return int64(*f)
	}
	v := reflect.ValueOf(field).Elem()
	switch {
	case v.IsZero(), v.Kind() == reflect.Map && v.Len() == 0:
		return nil
	case v.Kind() == reflect.String: // a State, too
		return v.String()
	}
	return v.Interface()
}

// read reads what the server tells into a field.
func read(into, v any) {
	switch into := into.(type) {
	case *string:
		*into = text(v)
	case *State:
		*into = State(text(v))
	case *[]byte:
		*into = []byte(text(v))
	case *[]string:
		*into = texts(v)
	case *[]Wait:
		*into = list(v, wait)
	case *map[string]string:
		*into = tags(v)
	case *time.Time:
		*into = moment(v)
	case *time.Duration:
		*into = time.Duration(number(v)) * time.Millisecond
	case *int64:
		*into = number(v)
	case *int:
		*into = int(number(v))
	case *uint32:
		*into = uint32(number(v))
	case *bool:
		*into = number(v) != 0
	}
}

// list returns what read makes of the elements of an array.
func list[T any](v any, read func(v any) T) []T {
	elements, _ := v.([]any)
	all := make([]T, len(elements))
	for i, v := range elements {
		all[i] = read(v)
	}
	return all
}

// pair returns the two parts of a reply.
func pair(v any, err error) (a, b any, _ error) {
	parts, _ := v.([]any)
	switch {
	case err != nil:
		return nil, nil, err
	case len(parts) != 2:
		return nil, nil, unexpected(v)
	}
	return parts[0], parts[1], nil
}

func texts(v any) []string { return list(v, text) }

func tags(v any) map[string]string {
	all := make(map[string]string)
	for name, v := range fields(v) {
		all[name] = text(v)
	}
	return all
}

// fields are the pairs of a map: a map in RESP3, an array of names and values in RESP2.
func fields(v any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		switch v := v.(type) {
		case map[any]any:
			for name, v := range v {
				if !yield(text(name), v) {
					return
				}
			}
		case []any:
			for ; len(v) > 1; v = v[2:] {
				if !yield(text(v[0]), v[1]) {
					return
				}
			}
		}
	}
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// moment is the zero time if the server says none.
func moment(v any) (t time.Time) {
	if n, ok := v.(int64); ok {
		t = time.UnixMilli(n)
	}
	return t
}

func unexpected(v any) error {
	return fmt.Errorf("the server replied with %T, which is no reply to this", v)
}

// isNull says whether the reply was the null.
func isNull(err error) bool { return err == redis.Nil }
