package crash

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// found is a client's own names as a restart left them, by the replies to readOf of each.
func (c *redisClient) found(replies []string) keyspace {
	k := keyspace{}
	for i, own := range ownNames() {
		values := bulks(replies[i])
		var v value
		switch {
		case len(values) == 0:
		case own == ownText || own == ownCount:
			v.text = &values[0]
		case own == ownHash:
			v.fields = map[string]string{}
			for pair := range slices.Chunk(values, 2) {
				v.fields[pair[0]] = pair[len(pair)-1]
			}
		default:
			v.list = values
		}
		k.put(c.name(own), v)
	}
	return k
}

// states are how the client's own names may be after a restart: after the answered requests, and
// after each of the others. parts are how they may be within one of those, by what was found.
func (c *redisClient) states(found keyspace) (states, parts []keyspace) {
	at := c.acked.clone()
	states = []keyspace{at.clone()}
	for _, op := range c.unanswered() {
		if op.own {
			if part, ok := at.trimmedTo(len(found.list(op.commands[0][1])), op.commands); ok {
				parts = append(parts, part)
			}
			at.apply(op.commands)
			states = append(states, at.clone())
		}
	}
	return states, parts
}

// checkOwn compares what a restart found under the client's own names with what may be there, and
// goes on from what was found.
func (c *redisClient) checkOwn(found keyspace) {
	states, parts := c.states(found)
	same := func(k keyspace) bool { return maps.EqualFunc(k, found, (*value).equal) }
	if !slices.ContainsFunc(states, same) && !slices.ContainsFunc(parts, same) {
		for _, own := range ownNames() {
			c.explain(c.name(own), found, states)
		}
		c.r.report(Order, "the names of client %d are not as they were at any moment: %d requests were unanswered; %s",
			c.number, len(c.unanswered()), c.nearest(found, states))
	}
	c.acked, c.sent, c.astray = found, found.clone(), false
	c.forget()
}

// explain reports what is wrong with one name, if that can be told of it alone.
func (c *redisClient) explain(name string, found keyspace, states []keyspace) {
	if slices.ContainsFunc(states, func(k keyspace) bool { return k[name].equal(found[name]) }) {
		return
	}
	there, always, ever := found[name].parts(), states[0][name].parts(), map[string]bool{}
	for _, k := range states {
		at := k[name].parts()
		maps.DeleteFunc(always, func(p string, _ bool) bool { return !at[p] })
		maps.Copy(ever, at)
	}
	for p := range always {
		if !there[p] {
			c.r.report(Lost, "%s lacks %s, which it had in any case", name, brief(p))
			break
		}
	}
	for p := range there {
		if !ever[p] {
			c.r.report(Returned, "%s has %s, which it had no more or never", name, brief(p))
			break
		}
	}
}

// nearest says how what was found differs from the state that it is most like.
func (c *redisClient) nearest(found keyspace, states []keyspace) string {
	at, least := 0, []string{}
	for i, k := range states {
		var other []string
		for _, own := range ownNames() {
			if name := c.name(own); !k[name].equal(found[name]) {
				other = append(other, fmt.Sprintf("%s has %s instead of %s", name, found[name].sketch(), k[name].sketch()))
				if f, w := found.list(name), k.list(name); len(f) > 0 && len(w) > 0 {
					other[len(other)-1] += fmt.Sprintf(", from its element %d to %d", slices.Index(w, f[0]), slices.Index(w, f[len(f)-1]))
				}
			}
		}
		if i == 0 || len(other) < len(least) {
			at, least = i, other
		}
	}
	text := fmt.Sprintf("after %d of its %d unanswered requests to these names, ", at, len(states)-1) + strings.Join(least, ", and ")
	own := slices.DeleteFunc(slices.Clone(c.unanswered()), func(op redisOp) bool { return !op.own })
	if at > 0 {
		text += "; the last of these is " + briefCommands(own[at-1].commands)
	}
	if at < len(own) {
		text += "; the next is " + briefCommands(own[at].commands)
	}
	return text
}

// brief shows a value or a reply in a report.
func brief(v string) string {
	if id, whole := parsePayload([]byte(v)); whole {
		return fmt.Sprintf("value %v of %d bytes", id, len(v))
	}
	if len(v) <= 100 {
		return strconv.Quote(v)
	}
	return fmt.Sprintf("%q… of %d bytes", v[:100], len(v))
}

// briefCommands shows commands in a report.
func briefCommands(commands [][]string) string {
	var words []string
	for i, args := range commands {
		if i > 0 {
			words = append(words, "and")
		}
		words = append(words, args[0])
		for _, a := range args[1:min(len(args), 6)] {
			words = append(words, brief(a))
		}
	}
	return strings.Join(words, " ")
}

// checkRedis compares what the server holds after a restart with what the clients of the Redis
// protocol know.
func (r *run) checkRedis() error {
	link, err := r.server.dialToCheck(redisListener)
	if err != nil {
		return err
	}
	defer link.conn.Close()
	replies, err := link.ask([][]string{{"LRANGE", topicName, "0", "-1"}, {"LRANGE", nextName, "0", "-1"}})
	if err != nil {
		return err
	}
	for i, v := range r.checkTopic(bulks(replies[0]), bulks(replies[1])) {
		c := r.redisClients[i%len(r.redisClients)]
		c.claimed = append(c.claimed, v)
	}
	for _, c := range r.redisClients {
		var reads [][]string
		for _, own := range ownNames() {
			reads = append(reads, readOf(own, c.name(own)))
		}
		if replies, err = link.ask(reads); err != nil {
			return err
		}
		c.checkOwn(c.found(replies))
		if err := c.checkMortals(link); err != nil {
			return err
		}
	}
	return nil
}
