package loadgen

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// work is a Protocol of which each request is the work on one packet. A worker knows a claim only
// from its reply. So a window goes in three steps: it pushes its packets, claims as many, and
// acknowledges those. No claim comes before as many pushes. So each of them finds a packet, perhaps
// that of another connection.
type work struct {
	push     writer
	claim    part
	readSome func(src []byte, most int) (Progress, error) // counts so many replies at most

	// What claims and acknowledges a window with one request each; nil where each packet has its own.
	claimAll func(dst []byte, packets int) []byte
	ackAll   func(dst []byte) []byte
	acked    int // what ackAll was answered

	step    step
	packets int // of the window
	claimed int
	open    int    // replies of the step that are still to come
	ends    []byte // what acknowledges what was claimed: requests, or arguments of one
}

type step int

const (
	pushing step = iota
	claiming
	acking
)

var errNothingClaimed = errors.New("a claim found nothing, or a packet was no longer claimed; expected that nobody else uses the queue")

// await notes how many replies come for so many packets.
func (w *work) await(packets int) {
	w.open = packets
	if w.claimAll != nil {
		w.open = 1
	}
}

func (w *work) Append(dst []byte, first uint64, n int) []byte {
	w.step, w.packets, w.claimed, w.ends = pushing, n, 0, w.ends[:0]
	w.await(n)
	return w.push(dst, first, n)
}

// Consume counts a window as answered as a whole.
func (w *work) Consume(dst, src []byte) ([]byte, Progress, error) {
	var total Progress
	for total.Used < len(src) {
		if w.open == 0 {
			return dst, total, errors.New("the server sent more replies than there were requests")
		}
		p, err := w.readSome(src[total.Used:], w.open)
		if err == nil && p.Empty > 0 {
			err = errNothingClaimed
		}
		total.Used += p.Used
		if w.open -= p.Done; err == nil && w.open == 0 {
			dst, err = w.next(dst, &total)
		}
		if err != nil || p.Used == 0 {
			return dst, total, err
		}
	}
	return dst, total, nil
}

// next appends the step that follows to dst, or counts the window as answered.
func (w *work) next(dst []byte, p *Progress) ([]byte, error) {
	switch {
	case w.step == pushing && w.claimAll != nil:
		dst = w.claimAll(dst, w.packets)
	case w.step == pushing:
		dst = w.claim.all(dst, 0, w.packets)
	case w.claimed != w.packets:
		return dst, fmt.Errorf("%d packets were claimed, expected %d", w.claimed, w.packets)
	case w.step == claiming && w.ackAll != nil:
		dst = w.ackAll(dst)
	case w.step == claiming:
		dst = append(dst, w.ends...)
	case w.ackAll != nil && w.acked != w.packets:
		return dst, errNothingClaimed
	default:
		p.Done += w.packets
		p.Packets += w.packets
		return dst, nil
	}
	w.await(w.packets)
	w.step++
	return dst, nil
}

// redisWork reads the replies of Redis. Those to claims go to claimed.
func redisWork(w *work, claimed func(text []byte)) Protocol {
	replies := respReader{value: func(text []byte) {
		switch w.step {
		case claiming:
			claimed(text)
		case acking:
			acked, _ := number(text)
			w.acked = int(acked)
		}
	}}
	w.readSome = replies.readSome
	return w
}

// RedisWork makes each request the work on one packet: LPUSH, RPOPLPUSH to the list claimed, and
// LREM of what that moved. LREM searches from the right, where the oldest claims are. A packet has
// at most 1024 bytes.
func RedisWork(p Packets, claimed string) Protocol {
	w := &work{push: command("LPUSH", p.Queue, p).all, claim: command("RPOPLPUSH", p.Queue, claimed)}
	head := fmt.Appendf(nil, "*4\r\n$4\r\nLREM\r\n$%d\r\n%s\r\n$2\r\n-1\r\n", len(claimed), claimed)
	return redisWork(w, func(text []byte) {
		w.claimed++
		w.ends = appendBulk(append(w.ends, head...), text)
	})
}

// QueueClaim claims packets of Holdfast's queues for so long, and leaves them claimed.
func QueueClaim(queue string, lease time.Duration) Protocol {
	return Redis("QCLAIM", queue, "LEASE", milliseconds(lease))
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// QueueWork makes each request a QPUSH, a QCLAIM and a QACK.
func QueueWork(p Packets) Protocol {
	w := &work{push: command("QPUSH", p.Queue, p).all, claim: command("QCLAIM", p.Queue)}
	head := fmt.Appendf(nil, "*4\r\n$4\r\nQACK\r\n$%d\r\n%s\r\n", len(p.Queue), p.Queue)
	return redisWork(w, receipts(func(id, token []byte) {
		w.claimed++
		w.ends = appendBulk(appendBulk(append(w.ends, head...), id), token)
	}))
}

// QueueGroupWork does the work of a window with one QMPUSH, one QCLAIM with COUNT and one QACK.
func QueueGroupWork(p Packets) Protocol {
	queue := appendBulk(nil, []byte(p.Queue))
	payload := request(fmt.Sprintf("$%d\r\n", p.Size), p.numbered(), "\r\n")
	w := &work{
		push: func(dst []byte, first uint64, n int) []byte {
			dst = append(append(appendCount(dst, '*', uint64(3+n)), "$6\r\nQMPUSH\r\n"...), queue...)
			return payload.all(appendBulkNumber(dst, uint64(n)), first, n)
		},
		claimAll: func(dst []byte, packets int) []byte {
			dst = append(append(dst, "*4\r\n$6\r\nQCLAIM\r\n"...), queue...)
			return appendBulkNumber(append(dst, "$5\r\nCOUNT\r\n"...), uint64(packets))
		},
	}
	w.ackAll = func(dst []byte) []byte {
		dst = appendCount(dst, '*', uint64(2+2*w.claimed))
		return append(append(append(dst, "$4\r\nQACK\r\n"...), queue...), w.ends...)
	}
	return redisWork(w, receipts(func(id, token []byte) {
		w.claimed++
		w.ends = appendBulk(appendBulk(w.ends, id), token)
	}))
}

// renewedLease is longer than any run, so that no lease ends in it.
const renewedLease = MaxLimit

// QueueRenew makes the requests QEXTEND and QPROGRESS in turn, of claims that stand. A connection
// claims the packets of its first window before it sends the requests of that window.
func QueueRenew(queue string) Protocol {
	var renewals []part
	var replies respReader
	open, window, next := 0, 0, 0 // claims that are not answered, requests that wait for those; of renewals
	found := receipts(func(id, token []byte) {
		renewals = append(renewals,
			command("QEXTEND", queue, string(id), string(token), milliseconds(renewedLease)),
			command("QPROGRESS", queue, string(id), string(token), "50"))
	})
	replies.value = func(text []byte) {
		if open > 0 {
			found(text)
		}
	}
	claim := command("QCLAIM", queue, "LEASE", milliseconds(renewedLease))
	d := new(driver)
	d.write = func(dst []byte, first uint64, n int) []byte {
		if len(renewals) == 0 {
			open, window = n, n
			return claim.all(dst, first, n)
		}
		for range n {
			dst = renewals[next%len(renewals)](dst, 0)
			next++
		}
		return dst
	}
	d.read = func(dst, src []byte) ([]byte, Progress, error) {
		_, p, err := replies.consume(nil, src)
		if err != nil || open == 0 {
			p.Packets, p.Empty = p.Done, 0
			return dst, p, err
		}
		if p.Empty > 0 || p.Done > open {
			return dst, p, errNothingClaimed
		}
		if open -= p.Done; open == 0 {
			dst = d.write(dst, 0, window)
		}
		return dst, Progress{Used: p.Used}, nil
	}
	return d
}

// receipts finds what names a claim in the fields of a packet, which come as names and values.
func receipts(take func(id, token []byte)) func(text []byte) {
	var id []byte
	before := "" // the name of the field whose value comes, if it counts
	return func(text []byte) {
		name := before
		before = ""
		switch {
		case name == "id":
			id = append(id[:0], text...)
		case name == "token":
			take(id, text)
		case string(text) == "id":
			before = "id"
		case string(text) == "token":
			before = "token"
		}
	}
}
