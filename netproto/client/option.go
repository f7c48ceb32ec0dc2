package client

import (
	"fmt"
	"time"
)

// Option is one of a call. One that the call does not take is refused with ErrInvalid, and the
// error names those that it takes.
type Option interface{ add(r *request) }

// request holds what the options of a call say.
type request struct {
	args        []any // words of the protocol
	queues      []any // of a take, besides the first one, with OR before each
	newest      bool
	blocks      bool
	block       time.Duration // 0 has no end
	lease       time.Duration
	fill        time.Duration
	concurrency int  // of Consume alone
	burst       bool // too
}

type option func(r *request)

func (o option) add(r *request) { o(r) }

func says(w ...any) Option { return option(func(r *request) { r.args = append(r.args, w...) }) }

// Priority of a packet: 1 is best, 128 the default. One of 0 goes only together with another packet
// of its key.
func Priority(n uint32) Option { return says("PRIO", n) }

// Key puts a packet into the group of this key, which a take with Group takes together.
func Key(key string) Option { return says("KEY", key) }

// TTL is how long a packet lasts if nobody takes it: without end unless given.
func TTL(d time.Duration) Option { return says("TTL", milliseconds(d)) }

// Delay is how long a packet that is new, or replaced, waits before it is delivered.
func Delay(d time.Duration) Option { return says("DELAY", milliseconds(d)) }

// At is the moment before which a new packet is not delivered: at once if it is past. Give it or a
// Delay.
func At(t time.Time) Option { return says("AT", max(t.UnixMilli(), 0)) }

// Tag gives a packet a tag, by which filters select. A packet has up to 64.
func Tag(name, value string) Option { return says("TAG", name, value) }

// Producer says who pushes: [Packet.Producer]. There is none unless given.
func Producer(name string) Option { return says("PRODUCER", name) }

// Meta goes beside the payload with a packet, up to 4,096 bytes: [Packet.Meta]. The server passes
// it on as it is.
func Meta(b []byte) Option { return says("META", b) }

// Unique makes it safe to push again: nothing is added while a packet that was pushed with this id
// is ready, delayed or claimed, or with a Window while that lasts. Push returns that packet's id.
// PushBatch does not take it.
func Unique(id string) Option { return says("UNIQUE", id) }

// Window is how long the id of Unique stands for the first packet, whatever becomes of that.
func Window(d time.Duration) Option { return says("WINDOW", milliseconds(d)) }

// UntilClaim frees the id of Unique when work on its packet begins: a push during the run makes
// one more. A packet that comes back from its claim does not have the id any more.
func UntilClaim() Option { return says("UNTIL", "claim") }

// Replace gives the packet that has the id of Unique what this push brings, if it is ready or
// delayed: payload, tags, producer and TTL, and with Delay or At another moment. It keeps its
// place. With Delay each push puts the work off: it is done once, with the last payload.
func Replace() Option { return says("REPLACE") }

// Block waits so long at most: a push for room, a take for a packet. 0 waits until ctx ends. Pushes
// wait in order of arrival; one that has waited for ten minutes goes to the end of the line.
func Block(d time.Duration) Option {
	return option(func(r *request) { r.blocks, r.block = true, max(d, 0) })
}

// Or adds queues to a take, which takes from the first one that has a packet.
func Or(queues ...string) Option {
	return option(func(r *request) {
		for _, q := range queues {
			r.queues = append(r.queues, "OR", q)
		}
	})
}

// Count is the most packets of a take: 1 to 1,000, and 1 unless given. For Redrive and MoveAll it
// is the most in all.
func Count(n int) Option { return says("COUNT", n) }

// Fill has a claim of one queue wait until it gets Count packets, or until d after there was one:
// then it takes what there is. Nothing is claimed before. Without Block it waits if there is one.
func Fill(d time.Duration) Option {
	return option(func(r *request) {
		r.fill = d
		r.args = append(r.args, "FILL", milliseconds(d))
	})
}

// Newest takes the newest packet of the best priority. The oldest is the default.
func Newest() Option { return option(func(r *request) { r.newest = true }) }

// Group takes with a packet all others of its key, up to 1,000.
func Group() Option { return says("GROUP") }

// Lease is how long a claim lasts, if it is not extended. Consume extends it: there it is how soon
// the packets of a worker that is killed go to others. Of a Push it is how long those claims of the
// packet last that say no Lease; Consume always says one.
func Lease(d time.Duration) Option {
	return option(func(r *request) {
		r.lease = d
		r.args = append(r.args, "LEASE", milliseconds(d))
	})
}

// As says who claims. The default is the name of the client.
func As(consumer string) Option { return says("CONSUMER", consumer) }

// InState selects the packets in one state: all states unless given.
func InState(s State) Option { return says("STATE", string(s)) }

// Older selects claims that are at least so old.
func Older(d time.Duration) Option { return says("OLDER", milliseconds(d)) }

// To is the queue where Redrive brings packets.
func To(queue string) Option { return says("TO", queue) }

// DryRun has Purge, Harvest, Redrive and MoveAll count the packets, and change nothing.
func DryRun() Option { return says("DRYRUN") }

// Concurrency is how many packets a Consume works on at a time: 1 unless given.
func Concurrency(n int) Option { return option(func(r *request) { r.concurrency = n }) }

// Burst has a Consume end when there is nothing to claim, and its handlers have ended: in an empty
// queue, one that is paused, or one whose packets are delayed.
func Burst() Option { return option(func(r *request) { r.burst = true }) }

// Weight gives a share so many turns as it has where others have one: 1 to 1,000.
func Weight(n int) Option { return says("WEIGHT", n) }

// MaxClaimed is how many packets of a share are claimed at once at most, whatever the setting
// share-max-claimed says.
func MaxClaimed(n int64) Option { return says("MAX-CLAIMED", n) }

// Rate is how fast packets of a share are taken at most, such as "10/1m", whatever the setting
// share-rate says; "no" takes that back.
func Rate(text string) Option { return says("RATE", text) }

// Rest is how long nothing of a share is delivered, up to a day. 0 ends that.
func Rest(d time.Duration) Option { return says("HOLD", milliseconds(d)) }

// milliseconds rounds up, so that no time becomes 0, which often means never.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// parse reads the options of a call, which is not Consume.
func parse(options []Option) (r request, err error) {
	for _, o := range options {
		o.add(&r)
	}
	if r.concurrency != 0 || r.burst {
		return r, fmt.Errorf("%w: Concurrency and Burst are options of Consume", ErrInvalid)
	}
	return r, nil
}

// arguments reads the options of a call that neither waits nor takes.
func arguments(options []Option, command ...any) ([]any, error) {
	r, err := parse(options)
	if err == nil && (r.blocks || r.newest || len(r.queues) > 0) {
		err = fmt.Errorf("%w: Block, Newest and Or are options of Push, Pop and Claim", ErrInvalid)
	}
	return append(command, r.args...), err
}
