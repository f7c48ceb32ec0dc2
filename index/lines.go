package index

import (
	"cmp"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Who waits for a name stands in the line of its class. Thousands may wait for one name, each for a
// share or a tag of its own. A packet is for few of them, so the lines of such classes sleep, and
// the owner wakes those that it may be for. A line sleeps only once it was asked and takes nothing.
// So nobody is forgotten at a limit, or when a turn ends before all were asked.

// Class is a number that the owner gives to subscribers that take the same packets.
type Class uint32

// Key says what all packets have in common that a class takes. It stays the same while subscribers
// of the class are there.
type Key struct {
	By   []string // what Wake may find the class by, one of them; empty: nothing, so it is asked each time
	Gate int      // Waiting may shut it; below 3
}

// list is a chain of subscriptions.
type list struct {
	first, last uint32
}

// line is the subscriptions of one class, the longest waiting first.
type line struct {
	list
	class Class
	asked uint64     // what Waiting was told last
	keyed *keyedLine // that it is of; nil: its class has no key
}

// keyedLine is the line of a class with a key.
type keyedLine struct {
	line
	by    string    // of Key.By
	since uint64    // when the first of it began to wait
	heap  *lineHeap // that it is in while it is awake
	place uint32    // in that plus 1; 0: it sleeps
}

func (l *keyedLine) wake(from uint64) {
	if l.place == 0 {
		l.asked = from
		l.heap.Push(awake{l})
	}
}

// sleep lets a line sleep, if it may.
func (l *line) sleep() {
	if k := l.keyed; k != nil && k.place > 0 {
		k.heap.Remove(int(k.place - 1))
	}
}

// follow follows a change of who is the first.
func (l *line) follow(since uint64) {
	if k := l.keyed; k != nil {
		if k.since = since; k.place > 0 {
			k.heap.Fix(int(k.place - 1))
		}
	}
}

// keyedLines are those of a wait list. A nil one has none.
type keyedLines struct {
	byClass map[Class]*keyedLine
	byKey   map[string][]*keyedLine // none is empty
	awake   [3]lineHeap             // by Key.Gate
}

// add makes the line of a class, found by what finds the fewest others. It is awake, since a limit
// may keep back what it takes.
func (k *keyedLines) add(key Key, c Class) *line {
	by := slices.MinFunc(key.By, func(a, b string) int { return len(k.byKey[a]) - len(k.byKey[b]) })
	l := &keyedLine{by: by, heap: &k.awake[key.Gate]}
	l.line = line{class: c, keyed: l}
	k.byClass[c], k.byKey[by] = l, append(k.byKey[by], l)
	l.wake(0)
	return &l.line
}

// remove ends a line.
func (k *keyedLines) remove(l *keyedLine) {
	l.sleep()
	delete(k.byClass, l.class)
	if others := slices.DeleteFunc(k.byKey[l.by], func(o *keyedLine) bool { return o == l }); len(others) > 0 {
		k.byKey[l.by] = others
	} else {
		delete(k.byKey, l.by)
	}
}

// first returns the line that has waited longest of those that are awake with a gate below open,
// nil if there is none.
func (k *keyedLines) first(open int) (first *keyedLine) {
	if k == nil {
		return nil
	}
	for _, h := range k.awake[:open] {
		if len(h) > 0 && (first == nil || h[0].since < first.since) {
			first = h[0].keyedLine
		}
	}
	return first
}

// inOrder returns the lines, the longest waiting first.
func (k *keyedLines) inOrder() []*keyedLine {
	if k == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(k.byClass), func(a, b *keyedLine) int { return cmp.Compare(a.since, b.since) })
}

// awake is a line that does not sleep, in a heap.
type awake struct{ *keyedLine }

// Before is the order of waiting.
func (a *awake) Before(b *awake) bool { return a.since < b.since }

// Moved notes the place of the line.
func (a *awake) Moved(pos uint32) { a.place = pos }

type lineHeap = tree.Heap[awake, *awake]
