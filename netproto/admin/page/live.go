package page

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/words"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

const (
	// maxLives are the pages that are open at a time: half of the connections of the admin address.
	// One more is for users who operate.
	maxLives = 32
	// maxRows is how many queues a page is sent.
	maxRows = 20_000
	// liveStall ends a page that takes nothing for so long while it should.
	liveStall = 30 * time.Second

	eventsChannel = "holdfast:events"
)

// serveLive sends an open page what happens, as server-sent events.
func (p *Page) serveLive(w http.ResponseWriter, r *http.Request, v visitor) {
	leave := p.lives.Take(v.account)
	if leave == nil {
		p.config.Logger.Warn("connection refused", "protocol", Name, "remote", r.RemoteAddr, "limit", maxLives)
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("at most %d pages are open at a time, and a user leaves as many to others as it has: close one", maxLives))
		return
	}
	defer leave()
	defer admin.Keep(r)()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	conn, err := p.connect(ctx, r, v)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	told := make(chan string)
	source := p.source.Load()
	go listen(ctx, conn, told, func() (recent [][]byte) { // ends with ctx, or the server
		pass := access.NewPass(p.config.Users)
		pass.Enter(v.account)
		_ = source.Loop.Do(func(*broker.Tx) error { recent = source.Recent(&pass); return nil })
		return recent
	})
	surveyed := p.survey.join(source)
	defer p.survey.leave(surveyed)
	out := newEvents(w, r)
	view := view{survey: &p.survey, account: v.account}
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case event, open := <-told:
			if !open {
				return // the server stops
			}
			out.begin("told")
			out.WriteString(event)
			err = out.send()
		case <-surveyed:
			now, wrong := p.visitor(r)
			if wrong != nil || now.account.Name() != v.account.Name() {
				return // the user has logged out, or may no longer log in
			}
			err = view.send(out, now.account)
		}
	}
}

// listen passes on what is told in the channel of events, until the connection ends: first what is
// remembered. What is told between the subscription and that comes once.
func listen(ctx context.Context, conn net.Conn, told chan<- string, recent func() [][]byte) {
	defer close(told)
	pass := func(event string) {
		select {
		case told <- event:
		case <-ctx.Done():
		}
	}
	if _, err := conn.Write(appendRequest(appendRequest(nil, "HELLO", "3"), "SUBSCRIBE", eventsChannel)); err != nil {
		return
	}
	known := make(map[string]bool)
	for replies := (replies{Reader: bufio.NewReader(conn)}); ; {
		reply, err := replies.next(nil)
		if _, failed := err.(failure); err != nil && !failed {
			return
		}
		var words []any
		if json.Unmarshal(reply, &words) != nil || len(words) != 3 {
			continue
		}
		event, _ := words[2].(string)
		switch {
		case words[0] == "subscribe":
			for _, event := range recent() {
				known[string(event)] = true
				pass(string(event))
			}
		case known[event]:
			delete(known, event)
		case words[0] == "message":
			pass(event)
		}
	}
}

// view keeps what one page has been sent of the survey.
type view struct {
	survey  *survey
	account *access.Account // whose rights it was sent with
	seen    uint64          // the last survey
	shown   map[*row]bool   // rows that it has; true: the user may change the queue
	more    int             // others that it may look at
}

// send sends what has changed, or everything if that is new.
func (v *view) send(out *events, a *access.Account) error {
	s := v.survey
	s.mu.RLock()
	if a != v.account || v.seen == 0 {
		v.account, v.seen, v.shown, v.more = a, 0, make(map[*row]bool), 0
	}
	all := a == nil || a.MayLookAtAll()
	v.queues(out)
	figures := s.sums
	v.seen = s.turn
	if !all {
		figures = Figures{At: figures.At}
		for r := range v.shown {
			figures.add(&r.Surveyed)
		}
	}
	s.mu.RUnlock()
	out.begin("server")
	text, err := json.Marshal(figures)
	if err != nil {
		return err
	}
	out.Write(text)
	return out.send()
}

// columns are the columns of rows.
var columns = func() []string {
	all := []string{"database", "name"}
	for _, f := range words.QueueFigures {
		all = append(all, f.Name)
	}
	return append(all, "since", "taken", "manage")
}()

// queues writes the event of queues, if there is something to say.
func (v *view) queues(out *events) {
	before, s := out.Len(), v.survey
	out.begin("queues")
	names, _ := json.Marshal(columns) // which never fails
	fmt.Fprintf(out, `{"whole":%t,"columns":%s,"gone":[`, v.seen == 0, names)
	gone := 0
	for r := range v.shown {
		if s.lost <= v.seen {
			break
		}
		if r.gone {
			out.separate(&gone)
			out.Write(append(r.appendPlace(append(out.AvailableBuffer(), '[')), ']'))
			delete(v.shown, r)
		}
	}
	out.WriteString(`],"rows":[`)
	rows, more, crowded := 0, 0, v.more > 0 || len(s.all) > maxRows
	for _, r := range s.all {
		manage, shown := v.shown[r]
		switch {
		case r.changed <= v.seen && (shown || !crowded):
			continue
		case shown:
		case v.account != nil && !v.account.May(access.Look, []byte(r.Name)):
			continue
		case len(v.shown) >= maxRows:
			more++
			continue
		default:
			manage = v.account == nil || v.account.May(access.Manage, []byte(r.Name))
			v.shown[r] = manage
		}
		out.separate(&rows)
		out.Write(r.append(out.AvailableBuffer(), manage))
	}
	fmt.Fprintf(out, `],"more":%d}`, more)
	if rows == 0 && gone == 0 && more == v.more && v.seen > 0 {
		out.Truncate(before)
	}
	v.more = more
}

func (r *row) appendPlace(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, uint64(r.Database), 10), ',')
	return jsonbytes.Append(dst, []byte(r.Name))
}

// append appends the row as JSON. manage says whether the user may change the queue.
func (r *row) append(dst []byte, manage bool) []byte {
	dst = r.appendPlace(append(dst, '['))
	for _, n := range netproto.Figures(&r.QueueFigures) {
		dst = strconv.AppendInt(append(dst, ','), n, 10)
	}
	dst = strconv.AppendInt(append(dst, ','), r.Since, 10)
	dst = strconv.AppendInt(append(dst, ','), r.Taken, 10)
	return append(strconv.AppendBool(append(dst, ','), manage), ']')
}

// events are server-sent events for one page.
type events struct {
	bytes.Buffer // of the next ones
	control      *http.ResponseController
	to           io.Writer
	zip          *gzip.Writer // nil: they are not compressed
}

func newEvents(w http.ResponseWriter, r *http.Request) *events {
	e := &events{control: http.NewResponseController(w), to: w}
	w.Header().Set("Content-Type", "text/event-stream")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		e.zip, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // which is a level
		e.to = e.zip
	}
	return e
}

// begin begins an event, after the end of the one before.
func (e *events) begin(name string) {
	if e.Len() > 0 {
		e.WriteString("\n\n")
	}
	fmt.Fprintf(e, "event: %s\ndata: ", name)
}

// separate writes what stands between two values, and counts them.
func (e *events) separate(n *int) {
	if *n++; *n > 1 {
		e.WriteByte(',')
	}
}

// send sends the events.
func (e *events) send() error {
	e.WriteString("\n\n")
	_ = e.control.SetWriteDeadline(time.Now().Add(liveStall))
	_, err := e.WriteTo(e.to)
	if err == nil && e.zip != nil {
		err = e.zip.Flush()
	}
	if err == nil {
		err = e.control.Flush()
	}
	return err
}
