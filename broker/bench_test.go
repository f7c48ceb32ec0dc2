package broker_test

import (
	"bytes"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
)

// discard is a Receiver that keeps nothing.
type discard struct{}

func (discard) Packets(broker.Tag, []broker.Packet) {}
func (discard) Reply([]byte)                        {}
func (discard) Finish()                             {}
func (discard) Flush()                              {}
func (discard) UnwrittenBytes() int64               { return 0 }

// benchBroker is a broker without a disk.
func benchBroker(b *testing.B) *broker.Broker {
	store := newMemStore()
	state, err := recovery.Restore(store, recovery.Options{Now: startTime})
	if err != nil {
		b.Fatal(err)
	}
	return broker.New(nullStore{store}, state, broker.Options{})
}

// BenchmarkPushPop is the cost of a packet that goes in and out, 16 in a call, behind 1000 others.
func BenchmarkPushPop(b *testing.B) {
	br := benchBroker(b)
	defer br.Close()
	c := br.Attach(discard{}, groups)
	r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: []byte("key"), Payload: bytes.Repeat([]byte("x"), 128)}
	some := broker.Selection{End: broker.Oldest}
	push := func(tx *broker.Tx, n int) error {
		for range n {
			if err := tx.Push(r); err != nil {
				return err
			}
		}
		return nil
	}
	if err := call(br, func(tx *broker.Tx) error { return push(tx, 1000) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := call(br, func(tx *broker.Tx) error {
			if err := push(tx, 16); err != nil {
				return err
			}
			for range 16 {
				if err := tx.Pop(c, r.Queue, some, 0); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
