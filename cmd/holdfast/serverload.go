package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/recovery/dump"
)

// serverLoad is a load into a running server. Its records go in batches, each a transaction that
// also notes in a string of the server how far the load has come. So the note is always right, and
// a load that was cut short goes on behind it.
type serverLoad struct {
	loadTarget
	conn     *redis.Conn
	now      int64 // Unix milliseconds: what has expired by then is left out
	progress func(loaded, total int64)

	note  string // the name of the string
	mark  loadMark
	count loadCounts // of what is to be loaded

	// Where the second reading is.
	record int64
	target target     // of the last queue, string or hash
	end    *expiry    // of that, which is set behind its packets or fields
	batch  []loadItem // to be sent
	bytes  int        // of the batch
}

// loadTarget says what of a dump is loaded, and where to.
type loadTarget struct {
	queues []string // patterns
	to     string   // the queue that gets the packets of the one queue; "": each its own
	db     int      // of to
}

// loadMark is what is loaded. The server keeps it as JSON.
type loadMark struct {
	loadCounts
	Records int64 `json:"records"` // that were read
	Held    bool  `json:"held"`    // the server had the last queue, string or hash
	Refused int64 `json:"refused"` // commands
	Done    int64 `json:"done"`    // the moment of the end, in Unix milliseconds
}

type loadCounts struct {
	Packets int64 `json:"packets"`
	Queues  int64 `json:"queues"`
	Keys    int64 `json:"keys"`  // strings and hashes
	Taken   int64 `json:"taken"` // strings and hashes whose names the server had; left out
	Expired int64 `json:"expired"`
}

// target is a queue, string or hash on the server.
type target struct {
	db      int
	name    []byte
	wanted  bool // it is selected
	expired bool
	held    bool // the server has it
}

// expiry is when what has a name expires.
type expiry struct {
	target target
	at     int64
}

// loadItem is a record and where it goes. end is set before it.
type loadItem struct {
	*dump.Record
	target target
	end    *expiry
}

// isHead says whether the record is that of the target.
func (i *loadItem) isHead() bool {
	return i.Type == dump.TypeQueue || i.Type == dump.TypeString || i.Type == dump.TypeHash
}

// asksFor says that the server is asked whether it has the target.
func (i *loadItem) asksFor() bool { return i.isHead() && i.target.wanted && !i.target.expired }

const (
	// loadBatch is the bytes of a transaction, of which the server takes 4 MiB, and loadRecords how
	// many records it has: the server does nothing else meanwhile.
	loadBatch   = 1 << 20
	loadRecords = 1000
	// tagOverhead is what the server counts at most for the name of a tag, or its value, besides the
	// bytes.
	tagOverhead = 64
	// loadNotes begins the names of the notes. They stay for a week, so that nobody loads a dump twice
	// by mistake.
	loadNotes   = "holdfast:load:"
	loadNoteFor = 7 * 24 * time.Hour
)

// errLoaded means that the server has the dump.
var errLoaded = errors.New("this dump is in the server already")

// check reads the dump to its end before anything is loaded. It counts what is selected, and asks
// the server whether it can have it.
func (l *serverLoad) check(ctx context.Context, in io.Reader, progress func(dump.Progress)) error {
	var queue *dump.Record
	var lists []target // the queues with packets or settings
	hash := xxhash.New()
	_, err := dump.Read(ctx, io.TeeReader(in, hash), func(r *dump.Record) error {
		switch {
		case r.Type == dump.TypeHeader && r.Payload != nil:
			return errors.New("the dump was made without payloads: its packets cannot be loaded")
		case r.Type == dump.TypeQueue:
			if queue = nil; !dump.Match(l.queues, r.Queue) {
				return nil
			}
			queue = new(*r)
			if l.count.Queues++; l.count.Queues > 1 && l.to != "" {
				return errors.New("--to-queue: expected one queue, and the dump has more that --queue matches: name one")
			}
			if r.Definition().Settings != nil {
				lists = append(lists, l.targetOf(r))
			}
		case r.Type == dump.TypePacket && queue != nil:
			l.count.Packets++
			if n := len(lists); n == 0 || string(lists[n-1].name) != string(l.targetOf(queue).name) || lists[n-1].db != l.targetOf(queue).db {
				lists = append(lists, l.targetOf(queue))
			}
		}
		return nil
	}, progress)
	switch {
	case err != nil:
		return err
	case l.to != "" && l.count.Queues == 0:
		return errors.New("--to-queue: the dump has no queue that --queue matches")
	}
	_, _ = fmt.Fprintf(hash, "%q %q %d", l.queues, l.to, l.db)
	l.note = fmt.Sprintf("%s%016x", loadNotes, hash.Sum64())
	for len(lists) > 0 && err == nil {
		n := min(len(lists), loadRecords)
		err = l.checkNames(ctx, lists[:n])
		lists = lists[n:]
	}
	return err
}

// checkNames refuses queues with the names of strings and hashes.
func (l *serverLoad) checkNames(ctx context.Context, lists []target) error {
	types, err := l.types(ctx, lists)
	for i, kind := range types {
		if kind == "string" || kind == "hash" {
			return fmt.Errorf("the server has a %s called %.100q, and the dump a queue of that name: load that alone, with --queue and --to-queue", kind, lists[i].name)
		}
	}
	return err
}

// types asks what has some names.
func (l *serverLoad) types(ctx context.Context, names []target) (types []string, err error) {
	pipe := l.conn.Pipeline()
	var asked []*redis.StatusCmd
	for _, t := range names {
		pipe.Select(ctx, t.db)
		asked = append(asked, pipe.Type(ctx, string(t.name)))
	}
	pipe.Select(ctx, 0)
	_, err = pipe.Exec(ctx)
	for _, cmd := range asked {
		types = append(types, cmd.Val())
	}
	return types, err
}

// begin asks the server how far it has loaded the dump, unless that shall be loaded again.
func (l *serverLoad) begin(ctx context.Context, again bool) error {
	pipe := l.conn.Pipeline()
	pipe.Select(ctx, 0)
	if again {
		pipe.Del(ctx, l.note)
	}
	pipe.Do(ctx, "WATCH", l.note)
	noted := pipe.Get(ctx, l.note)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if text, err := noted.Bytes(); err == nil {
		if err := json.Unmarshal(text, &l.mark); err != nil {
			return fmt.Errorf("the string %s of the server is no note of a load: %w", l.note, err)
		}
	}
	if l.mark.Done > 0 {
		return fmt.Errorf("%w: %s since %s; to load it once more, add --again",
			errLoaded, plural(l.mark.Packets, "packet"), time.UnixMilli(l.mark.Done).UTC().Format(time.RFC3339))
	}
	return nil
}

// run loads what begin has left.
func (l *serverLoad) run(ctx context.Context, in io.Reader) error {
	_, err := dump.Read(ctx, in, func(r *dump.Record) error { return l.add(ctx, r) }, nil)
	return err
}

// targetOf is where a queue, string or hash of the dump goes.
func (l *serverLoad) targetOf(r *dump.Record) target {
	t := target{db: int(r.Database), name: r.Queue, wanted: true}
	switch {
	case r.Type != dump.TypeQueue:
		t.name, t.wanted = r.Name, l.to == "" && dump.Match(l.queues, r.Name)
	case !dump.Match(l.queues, r.Queue):
		t.wanted = false
	case l.to != "":
		t.db, t.name = l.db, []byte(l.to)
	}
	return t
}

// add adds a record to the batch, and sends that if it is full. A record that is loaded is only
// looked at.
func (l *serverLoad) add(ctx context.Context, r *dump.Record) error {
	l.record++
	item := loadItem{Record: new(*r)} // its place is used again
	switch {
	case item.isHead():
		l.target = l.targetOf(r)
		item.end, l.end = l.end, nil
		if at := int64(r.Expires); at != 0 {
			if l.target.expired = at <= l.now; l.target.wanted && !l.target.expired && r.Type != dump.TypeString {
				l.end = &expiry{l.target, at}
			}
		}
	case r.Type == dump.TypeEnd:
		item.end, l.end = l.end, nil
	}
	item.target = l.target
	if l.record <= l.mark.Records {
		if l.record == l.mark.Records {
			l.target.held = l.mark.Held
		}
		return nil
	}
	l.batch = append(l.batch, item)
	l.bytes += len(r.Payload) + len(r.Key) + len(r.Value) + len(r.Name) + len(r.Queue) + len(r.Reason)
	for _, t := range r.Tags {
		l.bytes += len(t) + tagOverhead
	}
	if l.bytes < loadBatch && len(l.batch) < loadRecords && r.Type != dump.TypeEnd {
		return nil
	}
	return l.send(ctx)
}
