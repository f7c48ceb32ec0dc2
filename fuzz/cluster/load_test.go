package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	lanes     = 2                // queues of each kind
	producers = 2                // of a queue
	lease     = 30 * time.Second // of a claim
	sure      = 20 * time.Second // a claim that is younger stands
	held      = 12 * time.Second // how long some claims are held, while another node may own
	patience  = 4 * time.Second  // for an answer
	deepest   = 300              // producers wait beyond this
)

// load is clients of all nodes. Each goroutine has a client of its own, and goes to another node
// after an error.
type load struct {
	addrs  []string
	judge  *judge
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	paused atomic.Bool // no client asks for anything
	blind  atomic.Bool // nobody looks at the counter

	pops   []*lane
	claims []*lane

	low  atomic.Int64 // what the counter is at least that one client raises: the highest answer
	sent atomic.Int64 // what it is at most

	acks   atomic.Int64 // commands that were answered
	last   atomic.Int64 // when the last one was, Unix nanoseconds
	silent atomic.Int64 // the longest time without one since it was set to 0
	errs   sync.Map     // what servers refused, each text once
}

// lane is a queue with producers, and a client that pops or one that claims and acknowledges. Each
// field is of one goroutine until the load has ended.
type lane struct {
	queue   string
	pushes  [producers]producer
	popped  []pop
	unknown int             // pops without an answer
	acks    map[packet]told // of the client that claims
	depth   atomic.Int64
}

// pushed is how far it is known that a packet was pushed.
func (l *lane) pushed(p packet) told {
	if p.producer >= producers || p.number >= len(l.pushes[p.producer]) {
		return unsent
	}
	return l.pushes[p.producer][p.number]
}

func startLoad(c *cell) *load {
	l := &load{judge: c.judge}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for _, n := range c.nodes {
		l.addrs = append(l.addrs, n.redis)
	}
	l.last.Store(time.Now().UnixNano())
	for i := range lanes {
		p, w := &lane{queue: fmt.Sprintf("pop%d", i)}, &lane{queue: fmt.Sprintf("work%d", i), acks: make(map[packet]told)}
		l.pops, l.claims = append(l.pops, p), append(l.claims, w)
		for n := range producers {
			l.client(func(do call) { l.push(do, p, n) })
			l.client(func(do call) { l.push(do, w, n) })
		}
		l.client(func(do call) { l.pop(do, p) })
		l.client(func(do call) { l.work(do, w) })
	}
	l.client(l.raise)
	for _, addr := range l.addrs {
		l.all.Go(func() { l.look(addr) })
	}
	return l
}

// stop ends the load. What it was told is whole then.
func (l *load) stop() {
	l.cancel()
	l.all.Wait()
}

// call makes one request, once. Its error says that it was not answered, or refused.
type call func(args ...any) (any, error)

// some is a client of some node, not connected yet.
func (l *load) some() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: l.addrs[rand.IntN(len(l.addrs))], PoolSize: 1, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
		DialTimeout: time.Second, ReadTimeout: patience, WriteTimeout: patience, DialerRetries: 1,
	})
}

// client has a goroutine of the load make calls, until the load ends.
func (l *load) client(step func(do call)) {
	l.all.Go(func() {
		c := l.some()
		elsewhere := func() { _ = c.Close(); c = l.some() }
		do := func(args ...any) (any, error) {
			v, err := c.Do(context.Background(), args...).Result()
			if err == nil || errors.Is(err, redis.Nil) || strings.HasPrefix(err.Error(), "STALE") {
				l.heard()
				return v, err
			}
			if refused := redis.Error(nil); errors.As(err, &refused) {
				l.errs.Store(err.Error(), true)
			}
			elsewhere()
			time.Sleep(20 * time.Millisecond) // nodes that are away refuse at once
			return v, err
		}
		for n := 1; l.ctx.Err() == nil; n++ {
			if l.paused.Load() {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if step(do); n%100 == 0 {
				elsewhere() // each goes through all nodes
			}
			if *cycles == 0 {
				time.Sleep(5 * time.Millisecond) // other tests run beside this one
			}
		}
		_ = c.Close()
	})
}

// heard notes an answer.
func (l *load) heard() {
	now := time.Now().UnixNano()
	gap := now - l.last.Swap(now)
	for old := l.silent.Load(); gap > old && !l.silent.CompareAndSwap(old, gap); old = l.silent.Load() {
	}
	l.acks.Add(1)
}

// serves waits until clients were answered some times more.
func (l *load) serves(times int64) bool {
	acks := l.acks.Load()
	return await(limit, func() bool { return l.acks.Load() >= acks+times })
}

// push pushes the next packet of a producer.
func (l *load) push(do call, lane *lane, producer int) {
	if lane.depth.Load() > deepest {
		time.Sleep(time.Millisecond)
		return
	}
	pushes := &lane.pushes[producer]
	p := packet{producer, len(*pushes)}
	*pushes = append(*pushes, maybe)
	lane.depth.Add(1)
	if _, err := do("LPUSH", lane.queue, p.payload()); err == nil {
		(*pushes)[p.number] = answered
	}
}

// pop pops one packet.
func (l *load) pop(do call, lane *lane) {
	v, err := do("RPOP", lane.queue)
	if errors.Is(err, redis.Nil) {
		lane.depth.Store(0)
		return
	}
	if err != nil {
		lane.unknown++
		return
	}
	p, err := parsePacket(fmt.Sprint(v))
	if err != nil {
		l.judge.find("%s: a pop is answered by %q", lane.queue, v)
	}
	lane.popped = append(lane.popped, pop{p, lane.unknown})
	lane.depth.Add(-1)
}

// work claims a packet and acknowledges it: through another node after an error, where the claim
// has the token that it had.
func (l *load) work(do call, lane *lane) {
	v, err := do("QCLAIM", lane.queue, "LEASE", lease.Milliseconds())
	if err != nil {
		return
	}
	id, token, p, ok := parseClaim(v)
	if !ok {
		lane.depth.Store(0)
		return
	}
	if lane.acks[p] == answered {
		l.judge.find("%s: packet %v is back: it was acknowledged", lane.queue, p)
	}
	claimed := time.Now()
	if p.number%200 == 99 {
		await(held, func() bool { return l.ctx.Err() != nil })
		await(sure-time.Since(claimed), func() bool { // the connection was another owner's
			_, err := do("PING")
			return err == nil
		})
	}
	for first := lane.acks[p] == unsent; time.Since(claimed) < 2*lease; first = false {
		lane.acks[p] = maybe
		_, err := do("QACK", lane.queue, id, token)
		if err == nil {
			lane.acks[p] = answered
			lane.depth.Add(-1)
			return
		}
		if strings.HasPrefix(err.Error(), "STALE") {
			if age := time.Since(claimed); first && age < sure {
				l.judge.find("%s: the claim of packet %v is gone after %v: %v", lane.queue, p, age, err)
			}
			return
		}
	}
}

// parseClaim reads an answer of QCLAIM for one packet. ok is false if there is none.
func parseClaim(v any) (id, token string, p packet, ok bool) {
	all, _ := v.([]any)
	if len(all) == 0 {
		return "", "", p, false
	}
	list, _ := all[0].([]any)
	fields := make(map[any]string)
	for i := 0; i+1 < len(list); i += 2 {
		fields[list[i]] = fmt.Sprint(list[i+1])
	}
	p, _ = parsePacket(fields["payload"])
	return fields["id"], fields["token"], p, true
}

// raise raises the counter.
func (l *load) raise(do call) {
	most := l.sent.Add(1)
	v, err := do("INCR", "count")
	if err != nil {
		return
	}
	n, _ := v.(int64)
	if low := l.low.Swap(n); n <= low || n > most {
		l.judge.find("the counter was %d, was raised and is %d; %d were sent", low, n, most)
	}
	time.Sleep(time.Millisecond)
}

// asked is a look that was sent.
type asked struct {
	at  time.Time
	low int64 // what the counter was at least
}

// look asks a node for the counter again and again and waits for no answer meanwhile: so a node
// that was stopped has questions of all that time when it goes on.
func (l *load) look(addr string) {
	for l.ctx.Err() == nil {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		sent := make(chan asked, 10_000)
		go func() { // ends with the connection
			defer close(sent)
			defer conn.Close()
			for l.ctx.Err() == nil && len(sent) < cap(sent) {
				if time.Sleep(5 * time.Millisecond); l.blind.Load() {
					continue
				}
				sent <- asked{time.Now(), l.low.Load()}
				if _, err := conn.Write([]byte("GET count\r\n")); err != nil {
					return
				}
			}
		}()
		answers := bufio.NewReader(conn)
		for q := range sent {
			_ = conn.SetReadDeadline(time.Now().Add(2 * patience))
			n, err := readNumber(answers)
			if err != nil {
				break
			}
			if most := l.sent.Load(); n >= 0 && (n < q.low || n > most) {
				l.judge.find("%s says that the counter is %d, %v after it was asked; it was %d before that, and %d were sent",
					addr, n, time.Since(q.at), q.low, most)
			}
		}
		_ = conn.Close()
		for range sent { // the goroutine ends
		}
	}
}

// readNumber reads an answer to GET; -1 is a refusal.
func readNumber(r *bufio.Reader) (int64, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	switch {
	case line[0] == '-':
		return -1, nil
	case line[0] == '$' && line[1] == '-':
		return 0, nil
	}
	if line, err = r.ReadString('\n'); err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(line), 10, 64)
}
