package client

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// State is that of a packet.
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
)

// Packet is a packet as the server shows it. Fields that do not apply are zero.
type Packet struct {
	ID          string // stays the same through claims, returns, death and moves
	Queue       string
	Payload     []byte
	Priority    uint32 // 1 is best
	Attempt     int    // how many times it was claimed
	Key         []byte // of its group; nil without one
	Tags        map[string]string
	Producer    string    // who pushed it, if that was said
	Enqueued    time.Time // when it was pushed
	Expires     time.Time // when it goes, unless it is claimed then
	NotBefore   time.Time // when a delayed one becomes ready
	Token       int64     // of its claim; tokens rise over the whole store
	LeaseEnd    time.Time // when its claim ends by itself
	Consumer    string    // who claimed it last
	State       State     // empty for one that Pop took
	Reason      string    // why it came back or died, the last time
	Percent     int       // how far its consumer has come; -1 if it does not say
	PercentText string
	Origin      string    // the queue where it died, if that has a dead-letter queue
	Unique      string    // the id of a Unique push without Window
	FirstClaim  time.Time // of Show, as LastClaim and Why
	LastClaim   time.Time
	Why         string // why it is not delivered now

	c        *Client
	answered atomic.Bool // acknowledged or returned
}

// Claimed names a packet that was claimed before, so that it can be acknowledged or returned.
func (c *Client) Claimed(queue, id string, token int64) *Packet {
	return &Packet{Queue: queue, ID: id, Token: token, State: StateClaimed, Percent: -1, c: c}
}

// Ack ends the packet: it is done. An error that is ErrStale says that the claim has ended before.
// Ack is repeated when the connection is lost. So after that ErrStale may also mean success.
func (p *Packet) Ack(ctx context.Context) error {
	_, err := p.answer(ctx, ack(p))
	return err
}

// Nack returns the packet, as the error of a handler does: it is delivered again after the queue's
// backoff, or dead if it was the last attempt; [Dead] and [RetryIn] say otherwise. The error's text
// is kept as the reason, up to 4,096 bytes; nil gives none. Nack returns the new state. What Ack
// says about ErrStale holds here too.
func (p *Packet) Nack(ctx context.Context, why error) (State, error) {
	return p.answer(ctx, nack(p, why))
}

// answer ends the claim.
func (p *Packet) answer(ctx context.Context, request []any) (State, error) {
	v, err := p.c.do(ctx, request...)
	if err != nil {
		return "", err
	}
	p.answered.Store(true)
	return State(v.text()), nil
}

// Extend has the lease end so long from now: for what Claim brought, as Consume does it by itself.
// The error is ErrStale if the claim has ended.
func (p *Packet) Extend(ctx context.Context, d time.Duration) error {
	v, err := p.c.do(ctx, "QEXTEND", p.Queue, p.ID, p.Token, milliseconds(d))
	if err == nil {
		p.LeaseEnd = v.moment()
	}
	return err
}

// Progress says how far the work has come, for all who look at the packet: in percent, 0 to 100,
// and in words, of which 4,096 bytes are kept. The error is ErrStale if the claim has ended.
func (p *Packet) Progress(ctx context.Context, percent int, text string) error {
	_, err := p.c.do(ctx, "QPROGRESS", p.Queue, p.ID, p.Token, percent, cut(text))
	return err
}

// maxReason is the most bytes of a reason.
const maxReason = 4096

func cut(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") // half a letter at the end
}

// packets reads a list of packets, or the null for none.
func (c *Client) packets(v value, err error) ([]*Packet, error) {
	switch {
	case isNull(err):
		return nil, nil
	case err != nil:
		return nil, err
	case v.kind != '*':
		return nil, unexpected(v)
	}
	all := []*Packet{}
	for v := range v.list() {
		all = append(all, c.packet(v))
	}
	return all, nil
}

func (c *Client) packet(v value) *Packet {
	p := &Packet{Percent: -1, c: c}
	for name, v := range v.fields() {
		if read := readers[string(name)]; read != nil {
			read(p, v)
		}
	}
	return p
}

// readers read the fields of a packet, by the server's names.
var readers = map[string]func(p *Packet, v value){
	"id":            func(p *Packet, v value) { p.ID = v.text() },
	"queue":         func(p *Packet, v value) { p.Queue = v.text() },
	"payload":       func(p *Packet, v value) { p.Payload = bytes.Clone(v.body) },
	"priority":      func(p *Packet, v value) { p.Priority = uint32(v.number()) },
	"attempt":       func(p *Packet, v value) { p.Attempt = int(v.number()) },
	"key":           func(p *Packet, v value) { p.Key = bytes.Clone(v.body) },
	"tags":          func(p *Packet, v value) { p.Tags = tags(v) },
	"producer":      func(p *Packet, v value) { p.Producer = v.text() },
	"enqueued":      func(p *Packet, v value) { p.Enqueued = v.moment() },
	"expires":       func(p *Packet, v value) { p.Expires = v.moment() },
	"not-before":    func(p *Packet, v value) { p.NotBefore = v.moment() },
	"token":         func(p *Packet, v value) { p.Token = v.number() },
	"lease-end":     func(p *Packet, v value) { p.LeaseEnd = v.moment() },
	"consumer":      func(p *Packet, v value) { p.Consumer = v.text() },
	"state":         func(p *Packet, v value) { p.State = State(v.text()) },
	"reason":        func(p *Packet, v value) { p.Reason = v.text() },
	"progress":      func(p *Packet, v value) { p.Percent = int(v.number()) },
	"progress-text": func(p *Packet, v value) { p.PercentText = v.text() },
	"origin":        func(p *Packet, v value) { p.Origin = v.text() },
	"unique":        func(p *Packet, v value) { p.Unique = v.text() },
	"first-claim":   func(p *Packet, v value) { p.FirstClaim = v.moment() },
	"last-claim":    func(p *Packet, v value) { p.LastClaim = v.moment() },
	"why":           func(p *Packet, v value) { p.Why = v.text() },
}

func tags(v value) map[string]string {
	all := make(map[string]string)
	for name, v := range v.fields() {
		all[string(name)] = v.text()
	}
	return all
}

func unexpected(v value) error {
	return fmt.Errorf("the server replied with %.100q, which is no reply to this", v.body)
}
