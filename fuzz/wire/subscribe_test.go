package wire

import (
	"testing"
)

func TestADeliveryNeedsReadiness(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(subscribe("q"))
	sub.barrier()
	other.send(push("q", packet{"k", "p"}, 1, 0))
	other.barrier()
	sub.barrier()
	sub.send(ready)
	sub.wantPayloads("p")
}

func TestAPushIsDeliveredAtOnceToAReadySubscriber(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(subscribe("q"), ready)
	sub.barrier()
	other.send(push("q", packet{"k", "p"}, 1, 0))
	sub.want(packet{"k", "p"})
	other.send(pop("q"))
	other.want()
}

func TestReadinessBeforeTheSubscriptionCounts(t *testing.T) {
	server := serve(t)
	s := server.dial(t)
	s.send(push("q", packet{"k", "p"}, 1, 0), ready)
	s.barrier()
	s.send(subscribe("q"))
	s.wantPayloads("p")
}

func TestEachReadyIsOneDelivery(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(subscribe("q"), ready, ready, ready)
	sub.barrier()
	for _, p := range []string{"1", "2", "3", "4", "5"} {
		other.send(push("q", packet{p, p}, 1, 0))
		other.barrier()
	}
	sub.wantPayloads("1")
	sub.wantPayloads("2")
	sub.wantPayloads("3")
	sub.barrier()
	sub.send(ready)
	sub.wantPayloads("5")
	sub.barrier()
}

func TestADeliveryIsAGroupLikeAPop(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	other.send(
		push("q", packet{"k", "zero"}, 0, 0), push("q", packet{"k", "four"}, 4, 0), push("q", packet{"k", "two"}, 2, 0),
		push("q", packet{"other", "three"}, 3, 0))
	other.barrier()
	sub.send(subscribe("q"), ready)
	sub.wantPayloads("two", "four", "zero")
	sub.send(ready)
	sub.wantPayloads("three")
}

func TestPriorityZeroIsNotDeliveredButComesWithItsKey(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(subscribe("q"), ready)
	sub.barrier()
	other.send(push("q", packet{"k", "zero"}, 0, 0))
	other.barrier()
	sub.barrier()
	other.send(push("q", packet{"k", "one"}, 1, 0))
	sub.wantPayloads("one", "zero")
}

func TestOfSeveralSubscriptionsTheBestPriorityComesThenTheNewest(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	other.send(
		push("a", packet{"1", "a two"}, 2, 0), push("b", packet{"1", "b one, older"}, 1, 0),
		push("c", packet{"1", "c one, newer"}, 1, 0), push("d", packet{"1", "not subscribed"}, 1, 0))
	other.barrier()
	sub.send(subscribe("a"), subscribe("b"), subscribe("c"))
	for _, p := range []string{"c one, newer", "b one, older", "a two"} {
		sub.send(ready)
		sub.wantPayloads(p)
	}
	sub.send(ready)
	sub.barrier()
	other.send(push("b", packet{"2", "later"}, 9, 0))
	sub.wantPayloads("later")
}

func TestReadinessLeftAtAnUnsubscribeStaysWithTheConnection(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(subscribe("a"), ready, unsubscribe("a"))
	sub.barrier()
	other.send(push("a", packet{"k", "in a"}, 1, 0), push("b", packet{"k", "in b"}, 1, 0))
	other.barrier()
	sub.barrier()
	sub.send(subscribe("b"))
	sub.wantPayloads("in b")
	sub.send(subscribe("a"))
	sub.barrier()
}

func TestARedundantSubscribeIsIgnored(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(subscribe("q"), subscribe("q"), subscribe("q"), ready)
	sub.barrier()
	other.send(push("q", packet{"1", "once"}, 1, 0), push("q", packet{"2", "stays"}, 1, 0))
	other.barrier()
	sub.wantPayloads("once")
	sub.send(unsubscribe("q"), ready)
	sub.barrier()
	other.send(pop("q"))
	other.wantPayloads("stays")
}

func TestARedundantUnsubscribeIsIgnored(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	sub.send(unsubscribe("q"), unsubscribe("never"), subscribe("q"), unsubscribe("q"), unsubscribe("q"), subscribe("q"), ready)
	sub.barrier()
	other.send(push("q", packet{"k", "p"}, 1, 0))
	sub.wantPayloads("p")
}

func TestTheSubscriberReadyLongestIsServedFirst(t *testing.T) {
	server := serve(t)
	a, b, c, other := server.dial(t), server.dial(t), server.dial(t), server.dial(t)
	for _, s := range []*socket{a, b, c} {
		s.send(subscribe("q"))
		s.barrier()
	}
	for _, s := range []*socket{b, c, a} {
		s.send(ready)
		s.barrier()
	}
	for _, p := range []string{"1", "2", "3"} {
		other.send(push("q", packet{p, p}, 1, 0))
		other.barrier()
	}
	b.wantPayloads("1")
	c.wantPayloads("2")
	a.wantPayloads("3")
}

func TestASubscriberWithReadinessLeftWaitsBehindTheOthers(t *testing.T) {
	server := serve(t)
	a, b, other := server.dial(t), server.dial(t), server.dial(t)
	a.send(subscribe("q"), ready, ready)
	a.barrier()
	b.send(subscribe("q"), ready, ready)
	b.barrier()
	for _, p := range []string{"1", "2", "3", "4"} {
		other.send(push("q", packet{p, p}, 1, 0))
		other.barrier()
	}
	a.wantPayloads("1")
	b.wantPayloads("2")
	a.wantPayloads("3")
	b.wantPayloads("4")
}

func TestPacketsOfASubscriberThatHungUpStayForOthers(t *testing.T) {
	server := serve(t)
	gone, sub, other := server.dial(t), server.dial(t), server.dial(t)
	gone.send(subscribe("q"), ready, ready)
	gone.barrier()
	gone.hangUp()
	other.send(push("q", packet{"k", "p"}, 1, 0))
	other.barrier()
	sub.send(subscribe("q"), ready)
	sub.wantPayloads("p")
}

func TestPopAndDeliveriesOnOneConnectionComeInTheOrderOfTheirCauses(t *testing.T) {
	server := serve(t)
	s := server.dial(t)
	s.send(
		subscribe("q"), ready,
		push("q", packet{"1", "delivered"}, 5, 0), // takes the readiness
		push("q", packet{"2", "popped"}, 1, 0),
		pop("q"),
		pop("q"),
		ready,
		push("q", packet{"3", "delivered again"}, 5, 0))
	s.wantPayloads("delivered")
	s.wantPayloads("popped")
	s.want()
	s.wantPayloads("delivered again")
	s.barrier()
}

func TestManyReadiesInOneWriteAreCounted(t *testing.T) {
	server := serve(t)
	sub, other := server.dial(t), server.dial(t)
	const many = 3000
	sub.send(subscribe("q"))
	for range many {
		sub.send(ready)
	}
	sub.barrier()
	var all [][]byte
	for i := range many + 10 {
		all = append(all, push("q", packet{string([]byte{byte(i >> 8), byte(i)}), "p"}, 1, 0))
	}
	other.send(all...)
	other.barrier()
	for range many {
		if got := sub.reply(); len(got) != 1 {
			t.Fatalf("got %q, expected one packet", got)
		}
	}
	sub.barrier()
	other.send(pop("q"))
	if got := other.reply(); len(got) != 1 {
		t.Fatalf("got %q, expected one of those left", got)
	}
}
