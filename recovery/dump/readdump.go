package dump

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// ReadOptions say who gets what is read. Each may be nil; an error of a function ends the reading.
type ReadOptions struct {
	Queue    func(q *storage.Queue) error
	Packet   func(q *storage.Queue, id storage.PacketID, p *storage.Packet) error // bytes are valid during the call
	Progress func(Progress)
}

// ReadReport says what a dump holds.
type ReadReport struct {
	Format          Format
	Packets, Queues int64
	Bytes           int64
	Ignored         int64 // fields and records of a later version that were passed over
	Payloads        bool  // false when the dump was made without payloads
}

// Read reads a dump in JSONL or Msgpack to its end and checks all that Load checks before it
// stores. The error names the line or the number of the record; a dump without its end record, such
// as a backup that was cut off, is one.
func Read(ctx context.Context, r io.Reader, o ReadOptions) (ReadReport, error) {
	in, err := openInput(r)
	if err != nil {
		return ReadReport{}, err
	}
	d := &dumpReading{ReadOptions: o, in: in, ignored: in.passed}
	if d.check, err = newChecker(&in.first); err != nil {
		return ReadReport{}, fmt.Errorf("%s: %w", in.place(1), err)
	}
	err = d.runAll(ctx)
	return ReadReport{
		Format:   in.format,
		Packets:  int64(d.check.packets),
		Queues:   int64(d.check.queues),
		Bytes:    d.bytes,
		Ignored:  d.ignored,
		Payloads: d.check.header.payload != None,
	}, err
}

// dumpReading is one Read under way.
type dumpReading struct {
	ReadOptions
	in      *input
	check   *checker
	bytes   int64
	hash    uint64 // of these bytes
	ignored int64
}

func (d *dumpReading) runAll(ctx context.Context) error {
	d.in.start(chunkBytes, 0)
	defer d.in.close()
	return d.run(ctx)
}

func (d *dumpReading) run(ctx context.Context) error {
	tell := time.Now()
	for {
		c, err := d.in.next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			return d.check.finish()
		}
		for i := range c.entries {
			if err := d.entry(&c.entries[i]); err != nil {
				return fmt.Errorf("%s: %w", d.in.place(c.entries[i].at), err)
			}
		}
		if c.err != nil {
			return c.err
		}
		d.bytes, d.hash = c.end, c.hash
		d.ignored += c.ignored
		d.in.release(c)
		if now := time.Now(); d.Progress != nil && now.After(tell) {
			tell = now.Add(progressEvery)
			d.Progress(Progress{Packets: int64(d.check.packets), Bytes: d.bytes})
		}
	}
}

func (d *dumpReading) entry(e *entry) error {
	if err := d.check.check(e); err != nil {
		return err
	}
	switch {
	case e.kind == entryQueue && d.Queue != nil:
		return d.Queue(d.check.queue)
	case e.kind == entryPacket && d.Packet != nil:
		return d.Packet(d.check.queue, e.id, &e.packet)
	}
	return nil
}
