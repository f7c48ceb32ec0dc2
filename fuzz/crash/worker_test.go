package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
)

// call is a command, or a transaction with its MULTI and EXEC.
type call [][]string

// worker is a connection with names of its own. So the model of what is below them says each reply.
type worker struct {
	name    string
	rng     *rand.Rand
	link    *link
	model   *model.Server
	clock   int64      // of the model: nothing is due before a trial is over
	sent    []call     // those without a reply
	claims  [][]string // ids and tokens of claims that were not answered
	serial  int        // of the last payload
	size    int        // of payloads at most
	most    int        // packets in a queue, above which none comes
	refused int        // calls for which there was no room
	hung    error      // why the connection has ended
}

func newWorker(n int, seed uint64, clock int64) *worker {
	w := &worker{name: fmt.Sprint("w", n), rng: rand.New(rand.NewPCG(seed, uint64(n))), clock: clock, model: model.New(), size: 300, most: 100}
	w.model.At(clock, clock, model.All)
	return w
}

// work makes calls until the gate is closed or the connection ends. The error is a reply that is
// none of the model's.
func (w *worker) work(t *trial) error {
	for w.hung = nil; t.gate.enter(); {
		w.sent = nil
		for range 1 + w.rng.IntN(t.depth) {
			w.sent = append(w.sent, w.draw())
		}
		err := w.link.send(w.sent...)
		t.gate.leave()
		for err == nil && len(w.sent) > 0 {
			var replies []any
			if replies, err = w.link.receive(w.sent[0]); err != nil {
				break
			}
			before := w.refused
			if err := w.judge(w.sent[0], replies); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.sent = w.sent[1:]
			t.calls.Add(1)
			t.refused.Add(int64(w.refused - before))
		}
		if w.hung = err; err != nil {
			return nil
		}
	}
	return nil
}

// once makes a call.
func (w *worker) once(c call) error {
	err := w.link.send(c)
	if err != nil {
		return err
	}
	replies, err := w.link.receive(c)
	if err != nil {
		return err
	}
	return w.judge(c, replies)
}

// judge compares the replies to a call with those of the model.
func (w *worker) judge(c call, replies []any) error {
	for _, got := range replies {
		if e, failed := got.(model.Err); failed && (strings.HasPrefix(string(e), "OOM") || strings.HasPrefix(string(e), "EXECABORT")) {
			w.refused++ // nothing of it was done
			return nil
		}
	}
	w.model.Numbered(told(c, replies)) // one that was given before is none of the model's replies
	for i, want := range w.do(w.model, c) {
		if err := model.Same(replies[i], loosen(want, 1<<62)); err != nil {
			return fmt.Errorf("%.100q: %w", c[i], err)
		}
	}
	if c[0][0] == "QCLAIM" {
		list, _ := replies[0].([]any)
		for _, v := range list {
			p := model.Pairs(v)
			w.claims = append(w.claims, []string{fmt.Sprint(p["id"]), fmt.Sprint(p["token"])})
		}
	}
	return nil
}

// do has a model carry out a call.
func (w *worker) do(m *model.Server, c call) (replies []any) {
	for _, words := range c {
		m.At(w.clock, w.clock, model.All)
		replies = append(replies, m.Do(w.name, words))
	}
	return replies
}

// told is the first number of a packet or a claim that a call got; 0: none.
func told(c call, replies []any) int64 {
	for i, words := range c {
		v := replies[i]
		list, _ := v.([]any)
		switch {
		case words[0] == "EXEC" && len(list) == len(c)-2:
			return told(c[1:len(c)-1], list)
		case words[0] == "QCLAIM" && len(list) > 0:
			v = model.Pairs(list[0])["token"]
		case words[0] == "QMPUSH" && len(list) > 0:
			v = list[0]
		case words[0] != "QPUSH":
			continue
		}
		if n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// loosen has the moments in a reply be any, and numbers from one on, which no reply has told.
func loosen(want any, from int64) any {
	switch want := want.(type) {
	case []any:
		for i := range want {
			want[i] = loosen(want[i], from)
		}
	case model.Map:
		for name, v := range want {
			switch n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64); {
			case slices.Contains([]string{"enqueued", "expires", "not-before", "died", "lease-end"}, name), (name == "id" || name == "token") && err == nil && n >= from:
				want[name] = model.Any{}
			}
		}
	}
	return want
}

// look asks for all that the worker has.
func (w *worker) look() (replies []any, err error) {
	for _, words := range w.looks() {
		v, err := w.link.ask(words...)
		if err != nil {
			return nil, err
		}
		replies = append(replies, sorted(words, v))
	}
	return replies, nil
}

// sorted has a list of packets be in the order of their payloads: that of QLIST depends on moments.
func sorted(words []string, v any) any {
	if words[0] != "QLIST" {
		return v
	}
	list, _ := v.([]any)[1].([]any)
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(payload(a), payload(b)) })
	return list
}

func payload(v any) string {
	if m, ok := v.(model.Map); ok {
		return fmt.Sprint(m["payload"])
	}
	return fmt.Sprint(model.Pairs(v)["payload"])
}

func (w *worker) looks() (all call) {
	for _, q := range []string{"jobs", "other"} {
		all = append(all, []string{"QLIST", w.of(q), "COUNT", "1000"}, []string{"QPEEK", w.of(q), "COUNT", "1000"}, []string{"QGET", w.of(q)})
	}
	return append(all, []string{"LRANGE", w.of("list"), "0", "-1"}, []string{"LRANGE", w.of("next"), "0", "-1"},
		[]string{"GET", w.of("text")}, []string{"GET", w.of("count")}, []string{"HGETALL", w.of("hash")})
}

// settle finds out after a start how many of the calls without a reply were done. All that was
// answered must be there.
func (w *worker) settle() error {
	found, err := w.look()
	if err != nil {
		return fmt.Errorf("%s: look: %w", w.name, err)
	}
	from, m := w.model.Next(), w.model
	var wrong error
	for done := 0; ; done++ {
		c := m.Clone()
		c.Restart(w.clock, c.Next(), c.Low(), true)
		if err := w.holds(c, found, from); err == nil {
			w.model, w.sent = c, nil
			w.learn(found)
			return nil
		} else if wrong == nil {
			wrong = err
		}
		if done == len(w.sent) {
			return fmt.Errorf("%s: none of the states after %d calls without a reply (%.300q) is there; after none: %w", w.name, done, w.sent, wrong)
		}
		m = m.Clone()
		w.do(m, w.sent[done])
	}
}

// holds compares a look with a model.
func (w *worker) holds(m *model.Server, found []any, from int64) error {
	for i, words := range w.looks() {
		want := w.do(m, call{words})[0]
		if err := model.Same(found[i], loosen(sorted(words, want), from)); err != nil {
			return fmt.Errorf("%q: %w", words, err)
		}
	}
	return nil
}

// learn takes over the numbers that a look has shown.
func (w *worker) learn(found []any) {
	for i, words := range w.looks() {
		if words[0] != "QLIST" {
			continue
		}
		for _, v := range found[i].([]any) {
			p := model.Pairs(v)
			id, _ := strconv.ParseInt(fmt.Sprint(p["id"]), 10, 64)
			token, _ := strconv.ParseInt(fmt.Sprint(p["token"]), 10, 64)
			w.model.Learned(model.Key(0, words[1]), fmt.Sprint(p["payload"]), id, token)
		}
	}
}
