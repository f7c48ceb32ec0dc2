package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// workPacket is a packet of the work queue as the model has it.
type workPacket struct {
	id, payload, token string // token: of its claim; empty: it waits
	unique, cancelled  bool
}

// workAsked is what a client asks of the work queue: of a packet, with a token.
type workAsked struct{ command, payload, id, token string }

// workLimit is the max-claimed of the queue.
const workLimit = 2

// workStep takes a reply, if it is right, and returns the packets then, in their order.
func workStep(all []workPacket, in workAsked, reply string) (bool, []workPacket) {
	all = slices.Clone(all)
	told := strings.Fields(reply)
	at := slices.IndexFunc(all, func(p workPacket) bool { return p.id == in.id && (in.token == "" || p.token == in.token) })
	switch in.command {
	case "push":
		if waits := slices.IndexFunc(all, func(p workPacket) bool { return p.unique && p.token == "" }); waits >= 0 {
			all[waits].payload = in.payload
			return reply == all[waits].id+" replaced", all
		}
		isNew := len(told) == 2 && told[1] == "new" && !slices.ContainsFunc(all, func(p workPacket) bool { return p.id == told[0] })
		return isNew, append(all, workPacket{id: told[0], payload: in.payload, unique: true})
	case "claim":
		claimed, first := 0, -1
		for i, p := range slices.Backward(all) {
			if p.token == "" {
				first = i
			} else {
				claimed++
			}
		}
		if first < 0 || claimed == workLimit {
			return reply == "", all
		}
		if len(told) != 3 || told[0] != all[first].id || told[2] != all[first].payload {
			return false, nil
		}
		all[first].token, all[first].unique = told[1], false
		return true, all
	case "cancel":
		switch {
		case at < 0:
			return reply == array(null), all
		case all[at].token == "":
			return reply == bulks("gone"), slices.Delete(all, at, at+1)
		}
		all[at].cancelled = true
		return reply == bulks("told"), all
	case "extend":
		return strings.HasPrefix(reply, "-STALE") == (at < 0) && strings.HasPrefix(reply, "-CANCELLED") == (at >= 0 && all[at].cancelled), all
	}
	switch { // ack, nack
	case at < 0:
		return strings.HasPrefix(reply, "-STALE"), all
	case in.command == "ack":
		return reply == number(1), slices.Delete(all, at, at+1)
	case all[at].cancelled:
		return reply == bulk("cancelled"), slices.Delete(all, at, at+1)
	}
	all[at].token = ""
	return reply == bulk("ready"), all
}

func workModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []workPacket(nil) },
		Step: func(state, input, output any) (bool, any) {
			return workStep(state.([]workPacket), input.(workAsked), output.(string))
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.([]workPacket), b.([]workPacket)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q gives %q", input, output) },
	}
}

// workClient is a client that remembers the packets it was told of.
type workClient struct {
	*conn
	queue  string
	pushed string      // the id of the last one
	claims []workAsked // id and token, also of those that have ended
}

// work makes the next request. No other payload is the same.
func (c *workClient) work(rng *rand.Rand, payload string) (in workAsked, reply string) {
	one := workAsked{id: c.pushed}
	if len(c.claims) > 0 {
		one = c.claims[rng.IntN(len(c.claims))]
	}
	switch n := rng.IntN(8); {
	case n < 2:
		in = workAsked{command: "push", payload: payload}
		parts := replyParts(c.ask("QPUSH", c.queue, payload, "UNIQUE", "u", "UNTIL", "claim", "REPLACE", "TELL"))
		c.pushed, reply = parts[0], strings.Join(parts, " ")
	case n < 5 || one.id == "":
		in.command = "claim"
		if parts := replyParts(c.ask("QCLAIM", c.queue, "LEASE", "60000")); len(parts) > 0 {
			value := func(name string) string { return parts[slices.Index(parts, name)+1] }
			c.claims = append(c.claims, workAsked{id: value("id"), token: value("token")})
			reply = strings.Join([]string{value("id"), value("token"), value("payload")}, " ")
		}
	case n == 5:
		in = workAsked{command: "cancel", id: one.id}
		if rng.IntN(2) == 0 && c.pushed != "" {
			in.id = c.pushed
		}
		reply = c.ask("QCANCEL", c.queue, in.id)
	case one.token == "":
		return c.work(rng, payload)
	default:
		in = one
		in.command = []string{"ack", "nack", "extend"}[rng.IntN(3)]
		args := []string{"Q" + strings.ToUpper(in.command), c.queue, in.id, in.token}
		switch in.command {
		case "extend":
			args = append(args, "60000")
		case "nack":
			args = append(args, "DELAY", "0", "UNCOUNTED")
		}
		reply = c.ask(args...)
	}
	return in, reply
}

// replyParts are the texts and numbers of a reply.
func replyParts(reply string) (parts []string) {
	lines := strings.Split(strings.TrimSuffix(reply, "\r\n"), "\r\n")
	for i := 0; i < len(lines); i++ {
		switch l := lines[i]; l[0] {
		case ':', '+':
			parts = append(parts, l[1:])
		case '$':
			if l != "$-1" {
				i++
				parts = append(parts, lines[i])
			}
		}
	}
	return parts
}

// One order explains what clients of a work queue see: of pushes that replace and tell, of claims
// at a limit, of their ends, and of cancels.
func TestConcurrentWorkersSeeOneOrder(t *testing.T) {
	t.Parallel()
	addr := startHoldfast(t, daemon.Config{})
	clients := make([]workClient, linearClients)
	for i := range clients {
		clients[i].conn = dial(t, addr)
	}
	for round := range *histories {
		for i := range clients {
			clients[i] = workClient{conn: clients[i].conn, queue: fmt.Sprint("work:", round)}
		}
		clients[0].do(ok, "QSET", clients[0].queue, "max-claimed", fmt.Sprint(workLimit))
		oneOrder(t, workModel(), round, func(rng *rand.Rand, id, n int) (in, out any) {
			return clients[id].work(rng, fmt.Sprintf("v%d.%d", id, n))
		})
	}
}

func TestWrongWorkIsRefused(t *testing.T) {
	waits, claimed := workPacket{id: "1", payload: "a", unique: true}, workPacket{id: "2", payload: "b", token: "7"}
	cancelled := workPacket{id: "3", token: "8", cancelled: true}
	for name, row := range map[string]struct {
		all   []workPacket
		in    workAsked
		reply string
		right bool
	}{
		"a new one beside one that waits":     {[]workPacket{waits}, workAsked{command: "push"}, "4 new", false},
		"a new one beside a claimed one":      {[]workPacket{claimed}, workAsked{command: "push"}, "4 new", true},
		"an old id for a new one":             {[]workPacket{claimed}, workAsked{command: "push"}, "2 new", false},
		"replacing another one":               {[]workPacket{waits}, workAsked{command: "push"}, "2 replaced", false},
		"the payload that was replaced":       {[]workPacket{waits}, workAsked{command: "claim"}, "1 9 old", false},
		"beyond the limit":                    {[]workPacket{waits, claimed, cancelled}, workAsked{command: "claim"}, "1 9 a", false},
		"none below the limit":                {[]workPacket{waits, claimed}, workAsked{command: "claim"}, "", false},
		"a claimed one is not gone":           {[]workPacket{claimed}, workAsked{command: "cancel", id: "2"}, bulks("gone"), false},
		"one that waits is not told":          {[]workPacket{waits}, workAsked{command: "cancel", id: "1"}, bulks("told"), false},
		"a cancelled one is not ready":        {[]workPacket{cancelled}, workAsked{command: "nack", id: "3", token: "8"}, bulk("ready"), false},
		"a cancelled one is not extended":     {[]workPacket{cancelled}, workAsked{command: "extend", id: "3", token: "8"}, number(1), false},
		"a claim that has ended does not end": {[]workPacket{waits}, workAsked{command: "ack", id: "2", token: "7"}, number(1), false},
		"a claim ends":                        {[]workPacket{claimed}, workAsked{command: "ack", id: "2", token: "7"}, number(1), true},
	} {
		if right, _ := workStep(row.all, row.in, row.reply); right != row.right {
			t.Errorf("%s: %v", name, right)
		}
	}
}
