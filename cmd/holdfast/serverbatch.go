package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// send sends the batch as a transaction, and returns when it is on the server's disk.
func (l *serverLoad) send(ctx context.Context) error {
	if err := l.findHeld(ctx); err != nil {
		return err
	}
	t := &loadTransaction{mark: l.mark, now: l.now}
	for i := range l.batch {
		t.add(&l.batch[i])
	}
	t.mark.Records, t.mark.Held = l.record, l.target.held
	if l.batch[len(l.batch)-1].Type == dump.TypeEnd {
		t.mark.Done = time.Now().UnixMilli()
	}
	l.batch, l.bytes = l.batch[:0], 0
	noted, err := t.send(ctx, l.conn, l.note)
	if noted {
		l.mark = t.mark
		l.progress(l.mark.Packets, l.count.Packets)
	}
	return err
}

// findHeld asks which of the names in the batch the server has.
func (l *serverLoad) findHeld(ctx context.Context) error {
	var heads []target
	for i := range l.batch {
		if l.batch[i].asksFor() {
			heads = append(heads, l.batch[i].target)
		}
	}
	if len(heads) == 0 {
		return nil
	}
	types, err := l.types(ctx, heads)
	if err != nil {
		return err
	}
	held := l.batch[0].target.held
	for i := range l.batch {
		if item := &l.batch[i]; item.asksFor() {
			held, types = types[0] != "none", types[1:]
		}
		l.batch[i].target.held = held
	}
	l.target.held = held
	return nil
}

// loadTransaction is a batch as commands of the Redis protocol.
type loadTransaction struct {
	now      int64
	mark     loadMark // what is loaded with it
	db       int      // of the last command
	commands [][]any
}

// do adds a command for a database.
func (t *loadTransaction) do(db int, args ...any) {
	if db != t.db {
		t.commands = append(t.commands, []any{"SELECT", db})
		t.db = db
	}
	t.commands = append(t.commands, args)
}

// add adds what a record is for the server. What the server had keeps its settings and its expiry.
func (t *loadTransaction) add(item *loadItem) {
	to := &item.target
	if item.end != nil && !t.mark.Held {
		t.do(item.end.target.db, "PEXPIREAT", item.end.target.name, item.end.at)
	}
	t.mark.Held = to.held
	switch {
	case !to.wanted:
	case item.Type == dump.TypePacket:
		t.addPacket(item)
	case to.expired:
	case item.Type == dump.TypeQueue:
		t.mark.Queues++
		if s := item.Definition().Settings; s != nil && !to.held {
			t.addSettings(to, s)
		}
	case item.Type == dump.TypeWindow:
		if u := item.Window(); !u.Expired(t.now) {
			t.do(to.db, "QLOAD", to.name, "", "EXPIRES", 1, "UNIQUE", u.ID, "WINDOW", u.Until)
		}
	case item.isHead() && to.held:
		t.mark.Taken++
	case item.Type == dump.TypeString:
		t.mark.Keys++
		set := []any{"SET", to.name, item.Head().Value}
		if item.Expires != 0 {
			set = append(set, "PXAT", int64(item.Expires))
		}
		t.do(to.db, set...)
	case item.Type == dump.TypeHash:
		t.mark.Keys++
	case item.Type == dump.TypeField && !to.held:
		f := item.Field()
		t.do(to.db, "HSET", to.name, f.Name, f.Value)
	}
}

// addSettings gives a queue all of its settings: the server may have other defaults.
func (t *loadTransaction) addSettings(to *target, s *content.Settings) {
	set := []any{"QSET", to.name}
	var orders content.Orders
	for i := range content.SettingsTable {
		k := &content.SettingsTable[i]
		switch at := k.At(s).(type) {
		case *content.Orders:
			orders = *at
		case *int64:
			set = append(set, k.Name, *at)
		case *[]byte:
			set = append(set, k.Name, *at)
		case *content.Full:
			set = append(set, k.Name, at.String())
		case *bool:
			if !k.Fixed {
				set = append(set, k.Name, strconv.FormatBool(*at))
			}
		}
	}
	t.do(to.db, set...)
	for _, o := range orders { // each ends a command
		set := []any{"QSET", to.name, "enum", o.Tag}
		for _, v := range o.Values {
			set = append(set, v)
		}
		t.do(to.db, set...)
	}
	if s.Closed {
		t.do(to.db, "QCLOSE", to.name)
	}
}

// addPacket adds a packet that has not expired. One that is claimed becomes ready.
func (t *loadTransaction) addPacket(item *loadItem) {
	_, p, d := item.Packet()
	if p.Expired(t.now) || item.target.expired {
		t.mark.Expired++
		return
	}
	t.mark.Packets++
	load := []any{"QLOAD", item.target.name, p.Payload, "PRIO", *item.Priority, "PUSHED", max(0, p.EnqueuedAt)}
	number := func(word string, n int64) {
		if n > 0 {
			load = append(load, word, n)
		}
	}
	text := func(word, s string) {
		if s != "" {
			load = append(load, word, s)
		}
	}
	if p.Key != nil {
		load = append(load, "KEY", p.Key)
	}
	for _, tag := range p.Tags {
		load = append(load, "TAG", tag.Name, tag.Value)
	}
	number("EXPIRES", p.Expiry)
	number("AT", p.NotBefore)
	text("PRODUCER", p.Producer)
	text("UNIQUE", string(p.Unique))
	if d == nil {
		number("ATTEMPTS", int64(p.Attempts))
		t.do(item.target.db, load...)
		return
	}
	number("ATTEMPTS", int64(d.Attempts))
	number("FIRST", d.FirstClaim)
	number("LAST", d.LastClaim)
	text("CONSUMER", d.Consumer)
	text("REASON", d.Reason)
	text("ORIGIN", string(d.OriginName))
	if d.State != content.Claimed {
		load = append(load, "STATE", recovery.StateNames[d.State])
		number("UNTIL", d.Until)
		if len(d.Progress) > 0 {
			load = append(load, "PROGRESS", int(d.Progress[0]))
			text("TEXT", d.Progress[1:])
		}
	}
	t.do(item.target.db, load...)
}

// The errors of a batch.
var (
	errNotSent    = errors.New("the batch was refused, and nothing of it is loaded")
	errMaybe      = errors.New("the batch under way may be loaded")
	errSomeoneToo = errors.New("somebody else loads this dump now")
)

// send carries the transaction out. The server's note must be as it was when this connection saw it
// last. With noted the server has the batch, but for what err says.
func (t *loadTransaction) send(ctx context.Context, conn *redis.Conn, note string) (noted bool, err error) {
	text, err := json.Marshal(&t.mark)
	if err != nil {
		return false, err
	}
	t.do(0, "SET", note, text, "PX", loadNoteFor.Milliseconds())
	pipe := conn.Pipeline()
	pipe.Do(ctx, "MULTI")
	var sent []*redis.Cmd
	for _, args := range t.commands {
		sent = append(sent, pipe.Do(ctx, args...))
	}
	exec := pipe.Do(ctx, "EXEC")
	pipe.Do(ctx, "WATCH", note)
	after := pipe.Get(ctx, note)
	_, _ = pipe.Exec(ctx) // each command has its error
	var answer redis.Error
	switch err := exec.Err(); {
	case errors.Is(err, redis.Nil):
		return false, errSomeoneToo
	case errors.As(err, &answer):
		for i, cmd := range sent {
			if e := cmd.Err(); e != nil {
				return false, fmt.Errorf("%w: %s: %w", errNotSent, about(t.commands[i]), e)
			}
		}
		return false, fmt.Errorf("%w: %w", errNotSent, err)
	case err != nil:
		return false, fmt.Errorf("%w: %w", errMaybe, err)
	}
	replies, err := exec.Slice()
	for i, reply := range replies {
		if e, failed := reply.(error); failed && !errors.Is(e, redis.Nil) {
			if t.mark.Refused++; err == nil {
				err = fmt.Errorf("%s: %w", about(t.commands[i]), e)
			}
		}
	}
	if err != nil { // who goes on is to know that something is missing
		text, _ = json.Marshal(&t.mark)
		return true, errors.Join(err, conn.Set(ctx, note, text, loadNoteFor).Err())
	}
	if seen, e := after.Bytes(); e != nil || !bytes.Equal(seen, text) {
		return true, errSomeoneToo
	}
	return true, nil
}

// about says which command it was.
func about(args []any) string {
	if name, ok := args[min(1, len(args)-1)].([]byte); ok {
		return fmt.Sprintf("%s of %.100q", args[0], name)
	}
	return strings.TrimSpace(fmt.Sprint(args[0], " ", args[min(1, len(args)-1)]))
}
