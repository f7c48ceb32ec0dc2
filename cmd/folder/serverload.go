package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/load"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// serverLoad is a load into a running server: commands in the order of the dump, in transactions. A
// command that is refused, or has no answer, ends it. From its record on it can go on.
type serverLoad struct {
	*Load
	conn     *redis.Conn
	now      int64           // Unix milliseconds: what has expired by then is left out
	held     map[string]bool // the names that the server has; it keeps their settings, values and expiry
	report   load.Report
	progress func(loaded, total int64)
	total    int64 // packets to load

	from     int64 // the record with which it begins
	record   int64 // that was read last; the first is 1
	refused  error // what ended it
	target   loadTarget
	pipe     redis.Pipeliner
	commands []loadCommand // of the pipe
	answered int           // of these, when it ended
	bytes    int           // of their arguments
	selected int           // the database
}

// loadTarget is a queue, string or hash on the server.
type loadTarget struct {
	kind    string // of its record
	db      int
	name    []byte
	wanted  bool  // it is selected
	held    bool  // the server had it
	own     int64 // its record, if it is a queue or hash that the load may give settings, fields or an expiry
	expires int64 // Unix milliseconds, 0: never
}

func (t *loadTarget) key() string { return fmt.Sprint(t.db, " ", string(t.name)) }

type loadCommand struct {
	*redis.Cmd
	record int64
	own    int64 // as in its target
}

// A pipeline is of so many records, and about so many bytes. Names are asked for as many at a time.
const (
	loadPipe  = 64
	loadBytes = 1 << 20
)

// toServer loads a file into a running server. It reads the file to its end before.
func (c *Load) toServer(ctx context.Context, p *terminal.Process) error {
	if err := dump.CheckPatterns(c.Queue); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	in, err := p.Input(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	file, ok := in.Reader.(io.Seeker)
	if !ok {
		return fmt.Errorf("load: %s is no regular file, which can be read twice: to be checked, and to be loaded", c.File)
	}
	server, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	m := p.Meter(c.Quiet)
	defer m.End()
	began := time.Now()
	l := &serverLoad{
		Load: c, conn: server.Redis().Conn(), now: began.UnixMilli(), held: make(map[string]bool), selected: c.DB,
		progress: func(loaded, total int64) { m.Set("load", terminal.InPackets, loaded, total) },
	}
	defer l.conn.Close()
	if len(c.From) > 0 {
		l.from = c.From[0]
	}
	l.pipe = l.conn.TxPipeline() // each goes to the disk in one piece
	if err = l.check(ctx, in, func(at dump.Progress) { m.Set("check", terminal.InBytes, at.Bytes, in.Size) }); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return l.failed(ctx, err, "nothing was loaded")
	}
	if _, err = dump.Read(ctx, in, func(r *dump.Record) error { return l.add(ctx, r) }, nil); err != nil {
		return l.failed(ctx, cmp.Or(l.refused, err), fmt.Sprintf("%d of about %s are loaded; --from %s goes on there, and what was under way may be there twice then",
			l.report.Packets, terminal.Plural(l.total, "packet"), l.rest()))
	}
	m.End()
	if l.from > l.record {
		return fmt.Errorf("load: --from: expected at most %d, the records of the dump, got %d", l.record, l.from)
	}
	l.report.Took = time.Since(began)
	return c.print(p.Stdout, &l.report)
}

// failed is an error of the server or of the file, and what came of the load.
func (l *serverLoad) failed(ctx context.Context, err error, state string) error {
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		state += "; the user needs push and manage for all that is loaded"
	case redis.HasErrorPrefix(err, "too large"):
		state += "; " + connection.LongerPayloads
	}
	return fmt.Errorf("load: %w; %s", l.Explain(ctx, err), state)
}

// rest is what --from needs to go on: the record of the first command that has no answer, and the
// queues and hashes that are then the load's own.
func (l *serverLoad) rest() string {
	rest := l.From
	if l.record >= l.from {
		at, heads := l.record+1, []int64{}
		if len(l.commands) > 0 {
			at = l.commands[l.answered].record
		}
		for _, c := range l.commands {
			heads = append(heads, c.own)
		}
		heads = append(heads, l.target.own)
		for _, head := range l.From {
			if head > l.record { // it is not reached yet
				heads = append(heads, head)
			}
		}
		heads = slices.DeleteFunc(heads, func(head int64) bool { return head == 0 })
		rest = append([]int64{at}, slices.Compact(heads)...)
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(rest), "[]"), " ", ",")
}

// targetOf is where a queue, string or hash of the dump goes.
func (l *serverLoad) targetOf(r *dump.Record) loadTarget {
	t := loadTarget{kind: r.Type, db: int(r.Database), name: r.Name, expires: int64(r.Expires)}
	switch r.Type {
	case dump.TypeEnd:
		return loadTarget{}
	case dump.TypeQueue:
		t.name, t.wanted = r.Queue, dump.Match(l.Queue, r.Queue)
		if l.ToQueue != "" {
			t.db, t.name = l.DB, []byte(l.ToQueue)
		}
	default:
		t.wanted = l.ToQueue == "" && dump.Match(l.Queue, r.Name)
	}
	begun := slices.Contains(l.From[min(1, len(l.From)):], l.record)
	t.held = l.held[t.key()] && !begun
	if r.Type != dump.TypeString && t.wanted && !t.held && (t.expires == 0 || t.expires > l.now || begun) {
		t.own = l.record
	}
	return t
}

// check reads the dump to its end, and asks which of its names the server has.
func (l *serverLoad) check(ctx context.Context, in io.Reader, progress func(dump.Progress)) error {
	var names []loadTarget
	var queues int
	var wanted bool // the last queue or hash
	_, err := dump.Read(ctx, in, func(r *dump.Record) (err error) {
		switch r.Type {
		case dump.TypeHeader:
			if r.Payload != nil {
				return errors.New("the dump was made without payloads: its packets cannot be loaded")
			}
		case dump.TypeQueue, dump.TypeHash:
			t := l.targetOf(r)
			if wanted = t.wanted; !wanted {
				return nil
			}
			if r.Type == dump.TypeQueue {
				queues++
			}
			if queues > 1 && l.ToQueue != "" {
				return errors.New("--to-queue: expected one queue, and the dump has more that --queue matches: name one")
			}
			if names = append(names, t); len(names) == loadPipe {
				err, names = l.findHeld(ctx, names), names[:0]
			}
		case dump.TypePacket:
			if wanted && !r.Cancelled {
				l.total++
			}
		}
		return err
	}, progress)
	if err == nil && l.ToQueue != "" && queues == 0 {
		err = errors.New("--to-queue: the dump has no queue that --queue matches")
	}
	if err != nil {
		return err
	}
	return l.findHeld(ctx, names)
}

// findHeld notes which names the server has. It refuses queues with the names of strings or hashes.
func (l *serverLoad) findHeld(ctx context.Context, names []loadTarget) error {
	pipe := l.conn.Pipeline()
	var kinds []*redis.StatusCmd
	for i := range names {
		pipe.Select(ctx, names[i].db)
		kinds = append(kinds, pipe.Type(ctx, string(names[i].name)))
	}
	pipe.Select(ctx, l.selected)
	_, err := pipe.Exec(ctx)
	for i, t := range names {
		kind := kinds[i].Val()
		if t.kind == dump.TypeQueue && (kind == "string" || kind == "hash") {
			return fmt.Errorf("the server has a %s called %.100q, and the dump a queue of that name: load that alone, with --queue and --to-queue", kind, t.name)
		}
		if kind != "none" {
			l.held[t.key()] = true
		}
	}
	return err
}

// add adds what a record is for the server, and sends a pipeline that is full.
func (l *serverLoad) add(ctx context.Context, r *dump.Record) error {
	l.record++
	t := &l.target
	switch r.Type {
	case dump.TypeQueue, dump.TypeString, dump.TypeHash, dump.TypeEnd:
		if l.record >= l.from && t.own > 0 && t.expires != 0 { // behind its packets or fields
			l.do(ctx, "PEXPIREAT", t.name, t.expires)
		}
		*t = l.targetOf(r)
	}
	expired := t.expires != 0 && t.expires <= l.now
	switch {
	case l.record < l.from || !t.wanted:
	case r.Type == dump.TypePacket && (expired || r.Expires != 0 && int64(r.Expires) <= l.now):
		l.report.Expired++
	case expired, r.Cancelled: // its claim does not come along
	case r.Type == dump.TypePacket:
		l.packet(ctx, r)
	case r.Type == dump.TypeQueue:
		l.report.Queues++
		if s := r.Definition().Settings; s != nil && !t.held {
			l.settings(ctx, s)
		}
	case r.Type == dump.TypeShare && !t.held:
		args := []any{"QSHARE", t.name, []byte(r.Name), "WEIGHT", max(1, r.Weight)}
		if r.MaxClaimed > 0 {
			args = append(args, "MAX-CLAIMED", r.MaxClaimed)
		}
		if len(r.Rate) > 0 {
			args = append(args, "RATE", []byte(r.Rate))
		}
		if rest := int64(r.Until) - l.now; rest > 0 {
			args = append(args, "HOLD", min(rest, content.MaxHold))
		}
		l.do(ctx, args...)
	case r.Type == dump.TypeWindow:
		if u := r.Window(); !u.Expired(l.now) {
			l.do(ctx, "QLOAD", t.name, "", "EXPIRES", 1, "UNIQUE", u.ID, "WINDOW", u.Until)
		}
	case t.held: // of a hash
		if r.Type == dump.TypeHash {
			l.report.Taken++
		}
	case r.Type == dump.TypeHash:
		l.report.Keys++
	case r.Type == dump.TypeField:
		l.do(ctx, "HSET", t.name, []byte(r.Name), r.Field().Value)
	case r.Type == dump.TypeString:
		l.report.Keys++
		set := []any{"SET", t.name, r.Head().Value, "NX"}
		if t.expires != 0 {
			set = append(set, "PXAT", t.expires)
		}
		l.do(ctx, set...)
	}
	if len(l.commands) > 0 && (l.record-l.commands[0].record >= loadPipe-1 || l.bytes >= loadBytes) || r.Type == dump.TypeEnd {
		return l.send(ctx)
	}
	return nil
}

// do adds a command for the target.
func (l *serverLoad) do(ctx context.Context, args ...any) {
	if l.target.db != l.selected {
		l.selected = l.target.db
		l.do(ctx, "SELECT", strconv.Itoa(l.selected))
	}
	for _, a := range args {
		if b, ok := a.([]byte); ok {
			l.bytes += len(b)
		}
	}
	l.commands = append(l.commands, loadCommand{l.pipe.Do(ctx, args...), l.record, l.target.own})
}

// send sends the pipeline, and returns when all of it is on the server's disk.
func (l *serverLoad) send(ctx context.Context) error {
	_, _ = l.pipe.Exec(ctx) // each command has its error
	if len(l.commands) > 0 && redis.HasErrorPrefix(l.commands[0].Err(), "EXECABORT") {
		// One of them was refused, so that none was carried out: those before it can be.
		pipe := l.conn.Pipeline()
		for _, c := range l.commands {
			c.SetErr(nil)
			_ = pipe.Process(ctx, c.Cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
	for i, c := range l.commands {
		switch err := c.Err(); {
		case errors.Is(err, redis.Nil):
			if c.Args()[0] == "SET" { // the server had the name
				l.report.Taken++
				l.report.Keys--
			}
		case err != nil:
			l.answered = i
			l.refused = fmt.Errorf("record %d, %v of %.100q: %w", c.record, c.Args()[0], c.Args()[1], err)
			return l.refused
		case c.Args()[0] == "QLOAD":
			l.report.Packets++
		}
	}
	l.commands, l.bytes = l.commands[:0], 0
	l.progress(l.report.Packets, l.total)
	return nil
}

// settings gives a queue all of its settings: the server may have other defaults. A pause with an
// end is set with that at once, or it could stay without one.
func (l *serverLoad) settings(ctx context.Context, s *content.Settings) {
	set := []any{"QSET", l.target.name}
	for i := range content.SettingsTable {
		switch k := &content.SettingsTable[i]; at := k.At(s).(type) {
		case *[]byte:
			set = append(set, k.Name, *at)
		case *content.Choice:
			set = append(set, k.Name, k.Word(*at))
		case *int64, *bool:
			ends := k.Name == "pause-in" && s.PauseInUntil != 0 || k.Name == "pause-out" && s.PauseOutUntil != 0
			if k.By == "" && !ends {
				set = append(set, k.Name, fmt.Sprint(reflect.ValueOf(at).Elem()))
			}
		}
	}
	l.do(ctx, set...)
	for _, o := range s.Orders { // each ends a command
		set := []any{"QSET", l.target.name, "enum", o.Tag}
		for _, v := range o.Values {
			set = append(set, v)
		}
		l.do(ctx, set...)
	}
	if s.PauseInUntil != 0 {
		l.do(ctx, "QPAUSE", l.target.name, "IN", "UNTIL", s.PauseInUntil)
	}
	if s.PauseOutUntil != 0 {
		l.do(ctx, "QPAUSE", l.target.name, "UNTIL", s.PauseOutUntil)
	}
	if s.Closed {
		l.do(ctx, "QCLOSE", l.target.name)
	}
}

// packet adds a packet. One that is claimed becomes ready.
func (l *serverLoad) packet(ctx context.Context, r *dump.Record) {
	args := []any{"QLOAD", l.target.name, []byte(r.Payload), "PRIO", *r.Priority, "PUSHED", max(0, int64(r.EnqueuedAt))}
	number := func(word string, n int64) {
		if n > 0 {
			args = append(args, word, n)
		}
	}
	text := func(word string, b []byte) {
		if len(b) > 0 {
			args = append(args, word, b)
		}
	}
	if r.Key != nil {
		args = append(args, "KEY", []byte(r.Key))
	}
	for i := 0; i < len(r.Tags); i += 2 {
		args = append(args, "TAG", []byte(r.Tags[i]), []byte(r.Tags[i+1]))
	}
	number("EXPIRES", int64(r.Expires))
	number("AT", int64(r.NotBefore))
	number("ATTEMPTS", int64(r.Attempts))
	number("FIRST", int64(r.FirstClaim))
	number("LAST", int64(r.LastClaim))
	number("LEASE", int64(r.Lease))
	text("META", r.Meta)
	text("PRODUCER", r.Producer)
	text("UNIQUE", r.Unique)
	if r.UntilClaim != "" {
		args = append(args, "UNTILCLAIM")
	}
	text("CONSUMER", r.Consumer)
	text("REASON", r.Reason)
	text("ORIGIN", r.Origin)
	switch r.State {
	case recovery.StateNames[content.Claimed]:
		l.do(ctx, args...)
		return
	case recovery.StateNames[content.Dead], recovery.StateNames[content.Done]:
		args = append(args, "STATE", r.State)
	}
	number("UNTIL", int64(r.Until))
	if r.Progress != nil {
		args = append(args, "PROGRESS", *r.Progress)
		text("TEXT", r.ProgressNote)
	}
	l.do(ctx, args...)
}
