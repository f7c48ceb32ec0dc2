package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery/jsonbytes"
)

const (
	maxCommands = 8                // that are carried out at a time, as maxLives; others wait
	commandTime = 60 * time.Second // for one, with that
	maxReply    = 8 << 20          // bytes of JSON
)

// allowed are the commands that the page may give: those that look and manage. None of them waits
// for something to happen.
var allowed = set(`acl|whoami client|list config|get dbsize info
	qcancel qclose qconsumers qdel qdrop qget qharvest qlen qlist qmove qpeek qprio qproducers qpurge qredrive qrun qset qshares qshow qstat queues time type`)

func set(words string) map[string]bool {
	all := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

// serveCommand carries out a command of the Redis protocol.
func (p *Page) serveCommand(w http.ResponseWriter, r *http.Request, v visitor) {
	var request struct {
		Database int
		Command  []jsonbytes.Bytes
		Cut      int
	}
	if !read(w, r, &request, maxBody, bodyTimeout) {
		return
	}
	if slices.ContainsFunc(request.Command, jsonbytes.Bytes.IsZero) {
		refuse(w, http.StatusBadRequest, `an argument is null: expected a string or {"base64":"…"}`)
		return
	}
	if err := check(request.Command); err != nil {
		refuse(w, http.StatusForbidden, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandTime)
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(commandTime + bodyTimeout))
	reply, err := p.run(ctx, r, v, request.Database, request.Cut, request.Command)
	var failed failure
	switch {
	case errors.As(err, &failed):
		code := http.StatusBadRequest
		if word, _, _ := strings.Cut(string(failed), " "); word == "NOPERM" || word == "NOAUTH" {
			code = http.StatusForbidden
		}
		refuse(w, code, string(failed))
	case err != nil:
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"reply":%s}`, reply)
	}
}

// check refuses what the page may not give.
func check(command []jsonbytes.Bytes) error {
	if len(command) == 0 {
		return errors.New("ERR a command is missing")
	}
	word := strings.ToLower(string(command[0]))
	if len(command) > 1 && !allowed[word] {
		word += "|" + strings.ToLower(string(command[1]))
	}
	if !allowed[word] {
		return fmt.Errorf("ERR the page does not give the command %.40q", word)
	}
	return nil
}

// run carries out a command as a visitor, and returns its reply as JSON. The error is a failure if
// it is a reply.
func (p *Page) run(ctx context.Context, r *http.Request, v visitor, database, cut int, command []jsonbytes.Bytes) ([]byte, error) {
	leave := p.commands.Wait(ctx, v.account)
	if leave == nil {
		return nil, errors.New("other commands of the page take long: try again later")
	}
	defer leave()
	defer admin.Keep(r)()
	conn, err := p.connect(ctx, r, v)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var reply []byte
	replies := replies{bufio.NewReader(conn), cut}
	selected := jsonbytes.Bytes(strconv.Itoa(database))
	// One after the other: if the second fails, the third would be carried out elsewhere.
	for _, request := range [][]jsonbytes.Bytes{{jsonbytes.Bytes("HELLO"), jsonbytes.Bytes("3")}, {jsonbytes.Bytes("SELECT"), selected}, command} {
		if _, err = conn.Write(appendRequest(nil, request...)); err == nil {
			reply, err = replies.next(nil)
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil:
			return nil, fmt.Errorf("the command took longer than %v and was ended: what it has done until then stays", commandTime)
		default:
			return nil, err
		}
	}
	return reply, nil
}

// connect makes a connection to the Redis door for a visitor. It ends with ctx.
func (p *Page) connect(ctx context.Context, r *http.Request, v visitor) (net.Conn, error) {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return nil, err
	}
	conn, err := p.source.Load().Door.Connect(remote, v.account.Name())
	if err == nil {
		context.AfterFunc(ctx, func() { conn.Close() })
	}
	return conn, err
}
