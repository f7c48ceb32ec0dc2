package resp

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// waitForms are commands that wait if there is nothing, for one name or for several. Redis makes a
// command that waited again, as the server does, from version 7.2 on. Before, it looks only at the
// name that was filled. That is the same where one name is filled at a time, and all are lists.
var (
	waitForms = strings.Split(strings.TrimSpace(`
BLPOP k 0
BRPOP k 0
BRPOPLPUSH k k 0
BLMOVE k k e e 0
BLMPOP 0 1 k e COUNT 2
`), "\n")
	waitManyForms = strings.Split(strings.TrimSpace(`
BLPOP k 0
BRPOP k k 0
BLPOP k k k 0
BLMPOP 0 2 k k e COUNT 2
`), "\n")
)

// wakeForms are commands that change what others wait for.
var wakeForms = strings.Split(strings.TrimSpace(`
LPUSH k v
RPUSH k v v
LPUSH k v v v
RPUSHX k v
RPOPLPUSH k k
LMOVE k k e e
LPOP k
LTRIM k 1 0
LREM k 0 v
DEL k
SET k v
HSET k f v
RENAME k k
SELECT d
FLUSHDB
LRANGE k 0 -1
LLEN k
TYPE k
`), "\n")

// wakeListForms are those that make nothing but lists.
var wakeListForms = slices.DeleteFunc(slices.Clone(wakeForms), func(form string) bool {
	return strings.HasPrefix(form, "SET ") || strings.HasPrefix(form, "HSET ")
})

// audience is some connections of one server that wait, and one that does not.
type audience struct {
	main    *conn
	waiters []*conn
	ids     []string
	waiting []bool
}

func newAudience(server target, n int) *audience {
	a := &audience{main: server.dial(), waiting: make([]bool, n)}
	for range n {
		c := server.dial()
		a.waiters = append(a.waiters, c)
		a.ids = append(a.ids, c.do("CLIENT", "ID").text)
	}
	return a
}

func (a *audience) close() {
	for _, c := range append(a.waiters, a.main) {
		_ = c.Close()
	}
}

// blocked says that a connection waits.
func (a *audience) blocked(i int) bool {
	return strings.Contains(a.main.do("CLIENT", "LIST", "ID", a.ids[i]).text, " flags=b")
}

// heard returns the replies that waiters have got since the last call.
func (a *audience) heard() (text string) {
	for i, waits := range a.waiting {
		if waits && !a.blocked(i) {
			a.waiting[i] = false
			text += fmt.Sprintf(" %d: %s", i, a.waiters[i].read())
		}
	}
	return text
}

// listen lets a connection wait; it returns when that does, or the reply.
func (a *audience) listen(i int, args []string) string {
	c := a.waiters[i]
	c.send(request(args...))
	a.waiting[i] = true
	for !a.blocked(i) {
		if arrived(c) {
			a.waiting[i] = false
			return c.read().String()
		}
	}
	return "waits"
}

// arrived says that bytes have come, or come now.
func arrived(c *conn) bool {
	socket, ok := c.WriteCloser.(net.Conn)
	if ok {
		_ = socket.SetReadDeadline(time.Now().Add(time.Millisecond))
		defer socket.SetReadDeadline(time.Now().Add(limit))
	}
	_, err := c.in.Peek(1)
	return err == nil
}

// Who waits is served by the same commands as in Redis, in the same order, with the same replies.
func TestSystemRandomWaitersAreServedAsInRedis(t *testing.T) {
	redis, holdfast := newOriginal(t), newOther(t)
	rapid.Check(t, func(t *rapid.T) {
		const waiters = 4
		theirs, ours := newAudience(redis, waiters), newAudience(holdfast, waiters)
		defer theirs.close()
		defer ours.close()
		theirs.main.do("FLUSHALL")
		ours.main.do("FLUSHALL")
		var history strings.Builder
		same := func(args []string, want, got string) {
			t.Helper()
			fmt.Fprintf(&history, "%.40q: %.60s\n", args, want)
			if got != want {
				t.Fatalf("%sHoldfast: %.200s", history.String(), got)
			}
		}
		queue := func(args []string) {
			t.Helper()
			same(args, theirs.main.do(args...).String(), ours.main.do(args...).String())
		}
		send := func(args []string) {
			t.Helper()
			want := theirs.main.do(args...).String() + theirs.heard()
			same(args, want, ours.main.do(args...).String()+ours.heard())
		}
		waits, wakes, kinds := waitForms, wakeForms, []string{"wait", "wake", "wake", "transaction"}
		if rapid.Bool().Draw(t, "several names") {
			waits, wakes, kinds = waitManyForms, wakeListForms, kinds[:3]
		}
		for range rapid.SampledFrom(lengths).Draw(t, "commands") {
			i := rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "waiter")
			switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); {
			case kind == "wait" && !theirs.waiting[i]:
				args := drawCommand(t, waits)
				same(append([]string{fmt.Sprint(i)}, args...), theirs.listen(i, args)+theirs.heard(), ours.listen(i, args)+ours.heard())
			case kind == "transaction":
				queue([]string{"MULTI"})
				for range 3 {
					queue(drawCommand(t, wakes))
				}
				send([]string{"EXEC"})
			default:
				send(drawCommand(t, wakes))
			}
		}
	})
}
