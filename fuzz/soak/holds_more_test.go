package soak

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// mostChanged is the most elements that one command changes.
const mostChanged = 16_384

// numbered is a command with n words behind it.
func numbered(n int, words ...any) []any {
	for i := range n {
		words = append(words, fmt.Sprintf("%08d", i))
	}
	return words
}

// doubled is numbered with each word twice.
func doubled(n int, words ...any) []any {
	for i := range n {
		words = append(words, fmt.Sprintf("%08d", i), fmt.Sprintf("%08d", i))
	}
	return words
}

// equal fills a list with n equal elements.
func (f *filled) equal(n int) {
	f.batches((n+999)/1000, func(p redis.Pipeliner, i int) {
		p.RPush(f.t.Context(), "list", strings.Split(strings.Repeat("x ", min(1000, n-i*1000)-1)+"x", " "))
	})
}

// listeners are connections that listen to so many channels each. They get their confirmations.
// What stands behind the command begins the names of the channels.
func (f *filled) listeners(conns, channels int, command string) (end func()) {
	var all []net.Conn
	command, prefix, _ := strings.Cut(command, " ")
	for i := range conns {
		c, err := net.Dial("tcp", f.redis)
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, c)
		var request strings.Builder
		fmt.Fprintf(&request, "*%d\r\n$%d\r\n%s\r\n", channels+1, len(command), command)
		for j := range channels {
			name := fmt.Sprintf("%sm.%d.%d", prefix, i, j)
			fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(name), name)
		}
		go func() { _, _ = c.Write([]byte(request.String())) }() // ends with the server
		in := bufio.NewReader(c)
		for range 6 * channels { // lines of confirmations
			if _, err := in.ReadString('\n'); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	return func() {
		for _, c := range all {
			_ = c.Close()
		}
	}
}

// tails are connections that listen to one channel, and read what they get until the server ends.
func (f *filled) tails(channel string) {
	for range f.n {
		c, err := net.Dial("tcp", f.redis)
		if err == nil {
			_, err = fmt.Fprintf(c, "SUBSCRIBE %s\r\n", channel)
		}
		if err != nil {
			f.t.Fatal(err)
		}
		go func() { // ends with the server
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}()
	}
	for n := int64(0); n < int64(f.n); n = f.do("PUBSUB", "NUMSUB", channel).([]any)[1].(int64) {
		time.Sleep(10 * time.Millisecond)
	}
}

// changing makes a request while another client changes the list at both ends.
func changing(do func(f *filled)) func(f *filled) {
	return func(f *filled) {
		end, ended := make(chan struct{}), make(chan struct{})
		go func() { // ends when end is closed
			defer close(ended)
			for {
				select {
				case <-end:
					return
				default:
					f.db.RPush(f.t.Context(), "list", "new")
					f.db.RPop(f.t.Context(), "list")
					f.db.HSet(f.t.Context(), "hash", "new", "new")
					f.db.HDel(f.t.Context(), "hash", "new")
				}
			}
		}()
		do(f)
		close(end)
		<-ended
	}
}

// transaction sends a command n times in one transaction.
func transaction(n int, words ...any) func(f *filled) {
	return func(f *filled) {
		_, _ = f.db.TxPipelined(f.t.Context(), func(p redis.Pipeliner) error { // some are refused
			for range min(n, f.n) {
				p.Do(f.t.Context(), words...)
			}
			return nil
		})
	}
}

func moreRequests() []request {
	const million = 1_000_000
	list := func(f *filled) { f.list("list", f.n) }
	hash := func(f *filled) { f.hash("hash", f.n) }
	names := func(f *filled) { f.strings(f.n) }
	none := func(*filled) {}
	strings60 := func(f *filled) {
		for i := range 60 {
			f.do("SET", fmt.Sprintf("%08d", i), strings.Repeat("x", f.n/60))
		}
	}
	tagged := func(f *filled) {
		f.batches(f.n, func(p redis.Pipeliner, i int) { p.Do(f.t.Context(), "QPUSH", "list", "x", "TAG", "a", "b") })
	}
	claimed := func(f *filled) {
		list(f)
		f.batches(f.n/1000, func(p redis.Pipeliner, i int) { p.Do(f.t.Context(), "QCLAIM", "list", "COUNT", 1000) })
	}
	packets := func(options func(i int) []any) func(f *filled) {
		return func(f *filled) {
			f.batches(f.n, func(p redis.Pipeliner, i int) {
				p.Do(f.t.Context(), append([]any{"QPUSH", "list", "x"}, options(i)...)...)
			})
		}
	}
	withKeys := packets(func(int) []any { return []any{"KEY", "k"} })
	inLanes := packets(func(i int) []any { return []any{"TAG", "set", i % 9999} })
	inPriorities := packets(func(i int) []any { return []any{"PRIO", i%5000 + 1} })
	withLongKeys := func(f *filled) {
		f.batches(f.n, func(p redis.Pipeliner, i int) {
			p.Do(f.t.Context(), "QPUSH", "list", "x", "KEY", fmt.Sprintf("%01000000d", i))
		})
	}
	large := func(f *filled) {
		f.batches(f.n, func(p redis.Pipeliner, i int) { p.LPush(f.t.Context(), "list", fmt.Sprintf("%01000000d", i)) })
	}
	clients := func(f *filled) { f.tails("x") }
	ids := func(n int, words ...any) []any {
		for i := range n {
			words = append(words, i+1)
		}
		return words
	}
	var hangUp func()
	return []request{
		{"LRANGE that changes", million, aLook, list, changing(call("LRANGE", "list", 0, -1))},
		{"HGETALL that changes", million, aLook, hash, changing(call("HGETALL", "hash"))},
		{"LRANGE of one tag", 500_000, aLook, tagged, call("LRANGE", "list", 0, -1)},
		{"LRANGE in the middle of a tag", 500_000, aLook, tagged, call("LRANGE", "list", 250_000, 250_000)},
		{"LINDEX in the middle", million, aLook, list, call("LINDEX", "list", 500_000)},
		{"LPOS of a long list from the right", 2_200_000, aLook, func(f *filled) {
			f.list("list", f.n)
			f.batches(66, func(p redis.Pipeliner, i int) { p.RPush(f.t.Context(), "list", make([]any, 1000)...) })
		}, call("LPOS", "list", "", "RANK", -1, "COUNT", 0)},
		{"LPOS of a high rank", million, aLook, func(f *filled) { f.equal(f.n); f.do("LPOS", "list", "x") }, call("LPOS", "list", "x", "RANK", -mostChanged)},
		{"LREM of equal elements", mostChanged, aChange, func(f *filled) { f.equal(f.n) }, call("LREM", "list", 0, "x")},
		{"LPUSH at its limit", mostChanged, aChange, none, func(f *filled) { f.do(numbered(f.n, "LPUSH", "list")...) }},
		{"LPOP at its limit", mostChanged, aChange, list, func(f *filled) { f.do("LPOP", "list", f.n) }},
		{"MSET at its limit", mostChanged, aChange, none, func(f *filled) { f.do(doubled(f.n, "MSET")...) }},
		{"HSET at its limit", mostChanged, aChange, none, func(f *filled) { f.do(doubled(f.n, "HSET", "hash")...) }},
		{"HDEL at its limit", mostChanged, aChange, func(f *filled) { f.hash("hash", 2*f.n) }, func(f *filled) { f.do(numbered(f.n, "HDEL", "hash")...) }},
		{"MGET of many", 180_000, aLook, names, func(f *filled) { f.do(numbered(f.n, "MGET")...) }},
		{"EXISTS of many", 180_000, aLook, names, func(f *filled) { f.do(numbered(f.n, "EXISTS")...) }},
		{"HMGET of many", 180_000, aLook, hash, func(f *filled) { f.do(numbered(f.n, "HMGET", "hash")...) }},
		{"PUBSUB CHANNELS", million, aLook, func(f *filled) { f.listeners(20, f.n/20, "SUBSCRIBE") }, call("PUBSUB", "CHANNELS", "none*")},
		{"PUBSUB NUMSUB", mostChanged, aLook, none, func(f *filled) { f.do(numbered(f.n, "PUBSUB", "NUMSUB")...) }},
		{"EXEC of QPUSH that many tail", 1000, aChange, func(f *filled) { f.tails("holdfast:tail:list") }, func(f *filled) {
			_, _ = f.db.TxPipelined(f.t.Context(), func(p redis.Pipeliner) error {
				for range 4096 {
					p.Do(f.t.Context(), "QPUSH", "list", "x")
				}
				return nil
			})
		}},
		{"CLIENT LIST", 9990, aLook, clients, call("CLIENT", "LIST")},
		{"CLIENT KILL", 9990, aLook, clients, call("CLIENT", "KILL", "ADDR", "none")},
		{"CLIENT KILL of many", 9990, aChange, clients, call("CLIENT", "KILL", "TYPE", "pubsub")},
		{"EXEC of CLIENT LIST", 9990, aChange, clients, transaction(10_000, "CLIENT", "LIST")},
		{"PUBLISH beside patterns", 100_000, aLook, func(f *filled) { f.listeners(2, f.n/2, "PSUBSCRIBE") }, call("PUBLISH", "x", "text")},
		{"SUBSCRIBE at its limit", 65_000, aChange, none, func(f *filled) { f.listeners(1, f.n, "SUBSCRIBE") }},
		{"hang-up of subscribers", 300_000, aChange, func(f *filled) { hangUp = f.listeners(20, f.n/20, "SUBSCRIBE") }, func(f *filled) { hangUp(); time.Sleep(time.Second) }},
		{"FLUSHALL beside tails", million, aChange, func(f *filled) { f.listeners(20, f.n/20, "SUBSCRIBE holdfast:tail:") }, call("FLUSHALL")},
		{"EXEC of QSET of an order", mostChanged, aChange, func(f *filled) { f.do(numbered(min(f.n, 1800), "QSET", "list", "enum", "tag")...) }, transaction(mostChanged, "QSET", "list", "enum", "a", "b")},
		{"EXEC of INCRBYFLOAT", mostChanged, aChange, call("SET", "x", "1e4000"), transaction(mostChanged, "INCRBYFLOAT", "x", 1)},
		{"QPURGE", million, aChange, list, call("QPURGE", "list")},
		{"QMOVE", million, aChange, list, call("QMOVE", "list", "TO", "other")},
		{"QHARVEST", million, aChange, claimed, call("QHARVEST", "list")},
		{"QREDRIVE", 300_000, aChange, func(f *filled) {
			f.do("QSET", "list", "max-attempts", 1)
			list(f)
			f.batches(f.n/1000, func(p redis.Pipeliner, i int) { p.Do(f.t.Context(), "QCLAIM", "list", "COUNT", 1000, "LEASE", 1) })
			f.until(int64(f.n/1000*1000), "QPURGE", "list", "STATE", "dead", "DRYRUN")
		}, call("QREDRIVE", "list")},
		{"MGET of large strings", 60_000_000, aLarge, strings60, func(f *filled) { f.do(numbered(60, "MGET")...) }},
		{"EXEC of large strings", 60_000_000, aLarge, strings60, transaction(60, "GET", "00000007")},
		{"LPUSH of a large payload", 64 << 20, aLarge, none, func(f *filled) { f.do("LPUSH", "list", strings.Repeat("x", f.n)) }},
		{"QPEEK of a large payload", 64 << 20, aLarge, func(f *filled) { f.do("LPUSH", "list", strings.Repeat("x", f.n)) }, call("QPEEK", "list")},
		{"EXEC of KEYS", 200_000, aChange, names, transaction(10_000, "KEYS", "m.none*")},
		{"EXEC of KEYS that match", 200_000, aChange, names, transaction(10_000, "KEYS", "*")},
		{"EXEC of SCAN", 200_000, aChange, names, transaction(10_000, "SCAN", 0, "COUNT", 4000)},
		{"EXEC of SETRANGE", 1_000_000, aChange, none, transaction(300, "SETRANGE", "string", 999_999, "x")},
		{"EXEC of LRANGE", million, aChange, list, transaction(10_000, "LRANGE", "list", 0, 100)},
		{"EXEC of LPOS", million, aChange, list, transaction(10_000, "LPOS", "list", "00500000")},
		{"EXEC of LSET", million, aChange, list, transaction(10_000, "LSET", "list", 500_000, "x")},
		{"EXEC of LPOS beside keys", 500_000, aChange, withKeys, transaction(10_000, "LPOS", "list", "x")},
		{"EXEC of QPUSH beside long keys", 250, aChange, withLongKeys, func(f *filled) {
			_, _ = f.db.TxPipelined(f.t.Context(), func(p redis.Pipeliner) error {
				for i := range 10_000 {
					p.Do(f.t.Context(), "QPUSH", "list", "x", "KEY", i)
				}
				return nil
			})
		}},
		{"DEL of long keys", 128, aChange, withLongKeys, call("DEL", "list")},
		{"LINSERT between large elements", 64, aLarge, large, func(f *filled) { f.do("LINSERT", "list", "BEFORE", fmt.Sprintf("%01000000d", f.n/2), "x") }},
		{"QMOVE of large packets", 33, aLarge, large, func(f *filled) { f.do(append(ids(f.n, "QMOVE", "list"), "TO", "other")...) }},
		{"EXEC of QPRIO of large packets", 225, aLarge, large, func(f *filled) {
			_, _ = f.db.TxPipelined(f.t.Context(), func(p redis.Pipeliner) error {
				for i := range f.n {
					p.Do(f.t.Context(), "QPRIO", "list", i+1, 7)
				}
				return nil
			})
		}},
		{"EXEC of LPOS in sets of tags", 500_000, aChange, inLanes, transaction(10_000, "LPOS", "list", "x")},
		{"LPOS in sets of tags", 500_000, aLook, inLanes, call("LPOS", "list", "x", "COUNT", 8)},
		{"EXEC of LREM in priorities", 16_000, aChange, inPriorities, transaction(10_000, "LREM", "list", 1, "x")},
		{"EXEC of LINDEX in priorities", 500_000, aChange, inPriorities, transaction(10_000, "LINDEX", "list", 250_000)},
		{"EXEC of LINDEX in sets of tags", 500_000, aChange, inLanes, transaction(10_000, "LINDEX", "list", 20_000)},
		{"LINDEX in sets of tags", 500_000, aLook, inLanes, call("LINDEX", "list", 250_000)},
		{"EXEC of QLIST in sets of tags", 500_000, aChange, inLanes, transaction(10_000, "QLIST", "list", "COUNT", 1, "CURSOR", "1:128:1")},
		{"EXEC of QSTAT in priorities", 500_000, aChange, inPriorities, transaction(10_000, "QSTAT", "list")},
		{"EXEC of LPOS in short lists", 2000, aChange, func(f *filled) { f.lists(f.n, make([]any, 500)...) }, func(f *filled) {
			_, _ = f.db.TxPipelined(f.t.Context(), func(p redis.Pipeliner) error {
				for i := range f.n {
					p.Do(f.t.Context(), "LPOS", fmt.Sprintf("list:%08d", i), "none")
				}
				return nil
			})
		}},
	}
}
