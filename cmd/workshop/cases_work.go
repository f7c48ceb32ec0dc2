package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
)

// The cases of workers, who push, claim and acknowledge packets, and of many claims that stand.

func workCases(list []contender, s sizes) []benchCase {
	own := named(list, "holdfast")
	const about = "a packet is pushed, claimed and acknowledged (Redis: LPUSH, RPOPLPUSH, LREM), "
	return []benchCase{
		{
			name: "work-1", about: about + "64 connections, one at a time; beanstalkd syncs every 50 ms",
			contenders: list, run: throughput{limit: s.limit, traffic: works(64, 1, s.workEach, false)}.run,
		},
		{
			name: "work-64", about: about + "16 connections, 64 pushes, then 64 claims, then 64 acknowledgements at a time",
			contenders: list, run: throughput{limit: s.limit, traffic: works(16, 64, s.workDeep, false)}.run,
		},
		{
			name: "work-group-64", about: "the same in three requests: QMPUSH, QCLAIM COUNT 64, QACK of 64",
			contenders: own, run: throughput{limit: s.limit, traffic: works(16, 64, s.workDeep, true)}.run,
		},
		{
			name: "work-start", about: fmt.Sprintf("start with %s packets claimed, to the first packet popped, after kill -9 and after a clean stop", short(s.held)),
			contenders: own, run: heldStart{packets: s.held}.run,
		},
		{
			name: "work-ready", about: fmt.Sprintf("resident memory with %s and %s packets that are ready", short(s.held), short(2*s.held)),
			contenders: own, run: memory{low: s.held, high: 2 * s.held}.run,
		},
		{
			name: "work-held", about: "the same with packets that are claimed",
			contenders: own, run: memory{low: s.held, high: 2 * s.held, claimed: true}.run,
		},
		{
			name: "work-renew", about: fmt.Sprintf("QPOP, 16 connections, 64 at a time, alone and beside %s of QEXTEND and QPROGRESS a second", short(s.renewals)),
			contenders: own, run: renewals{pops: s.drain, rate: s.renewals, limit: s.limit}.run,
		},
	}
}

// works makes the work on packets. What is grouped has one request for each step of a window, which
// only Holdfast knows.
func works(conns, depth, count int, grouped bool) traffic {
	return func(c contender, _ state) []loadgen.Group {
		p := loadgen.Packets{Queue: queueName, Size: payloadSize}
		work := c.peer.work
		if grouped {
			work = loadgen.QueueGroupWork
		}
		return group("work", conns, depth, count, func() loadgen.Protocol { return work(p) })
	}
}

// hold claims packets of Holdfast and keeps them.
func hold() loadgen.Protocol { return loadgen.QueueClaim(queueName, loadgen.MaxLimit) }

// heldStart measures starts on the same data, where all but a few packets are claimed. Every start
// pops one of those few.
type heldStart struct{ packets int }

func (h heldStart) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	killed, stopped := newRows(c, "s"), newRows(c, "s")
	killed[0].Case, stopped[0].Case = c.name+" killed", c.name+" stopped"
	var s *server
	err := b.each(ctx, c, b.rounds, func(round, i int) error {
		p := c.contenders[i].peer
		if round == 0 {
			var err error
			if s, err = b.filled(ctx, p, h.packets+2*b.rounds+1); err != nil {
				return err
			}
			if err = s.fill(ctx, h.packets, hold); err != nil {
				return err
			}
		}
		s.kill()
		if err := h.start(ctx, s, killed[i]); err != nil {
			return err
		}
		if err := s.stop(ctx); err != nil {
			return err
		}
		if err := h.start(ctx, s, stopped[i]); err != nil {
			return err
		}
		if round == b.rounds-1 {
			return b.discard(s)
		}
		return nil
	})
	return slices.Concat(killed, stopped), err
}

func (h heldStart) start(ctx context.Context, s *server, r *row) error {
	took, err := s.start(ctx, s.peer.args, func() loadgen.Protocol { return s.peer.pop(queueName) }, aPacket)
	if err != nil {
		return err
	}
	r.Samples = append(r.Samples, took.Seconds())
	return r.addMemory(s)
}

// renewals measures how much steady renewals of claims slow pops down. Their share is the processor
// time that they take alone, on the server and here, divided by that of pops alone.
type renewals struct {
	pops, rate int
	limit      time.Duration // of the renewals alone
}

func (n renewals) run(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	newRow := func(name, unit string) *row {
		return &row{Case: "renew " + name, Server: c.contenders[0].label, Unit: unit}
	}
	alone, renewed, beside := newRow("pops alone", "packets/s"), newRow("alone", "requests/s"), newRow("pops beside", "packets/s")
	lost, share := newRow("pops lost", "%"), newRow("share", "%")
	err := b.each(ctx, c, b.rounds, func(_, i int) error {
		p := c.contenders[i].peer
		pops := group("pop", 16, 64, n.pops, func() loadgen.Protocol { return p.pop(queueName) })
		renew := group("renew", 4, 64, 0, func() loadgen.Protocol { return loadgen.QueueRenew(queueName) })
		renew[0].Rate = n.rate
		popsAlone, err := n.measure(ctx, b, p, pops, time.Minute)
		if err != nil {
			return err
		}
		renewedAlone, err := n.measure(ctx, b, p, renew, n.limit)
		if err != nil {
			return err
		}
		both, err := n.measure(ctx, b, p, slices.Concat(pops, renew), time.Minute)
		if err != nil {
			return err
		}
		alone.addResult(&popsAlone, 1)
		renewed.addResult(&renewedAlone, 1)
		popped := both
		popped.Groups = both.Groups[:1]
		beside.addResult(&popped, 1)
		lost.Samples = append(lost.Samples, 100*(1-popped.Rate()/popsAlone.Rate()))
		share.Samples = append(share.Samples, 100*busy(&renewedAlone)/busy(&popsAlone))
		return nil
	})
	return []*row{alone, renewed, beside, lost, share}, err
}

// measure runs the groups on a server of their own, which has packets for all of them.
func (n renewals) measure(ctx context.Context, b *bench, p *peer, groups []loadgen.Group, limit time.Duration) (loadgen.Result, error) {
	spare := 1
	for _, g := range groups {
		spare += g.Conns * g.Depth
	}
	s, err := b.filled(ctx, p, n.pops+spare)
	if err != nil {
		return loadgen.Result{}, err
	}
	result, err := s.measure(ctx, groups, limit)
	if err != nil {
		return result, err
	}
	return result, b.discard(s)
}

// busy is the processor time of a second.
func busy(r *loadgen.Result) float64 { return divide(float64(r.Server+r.Client), float64(r.Elapsed)) }
