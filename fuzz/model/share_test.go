package model

import (
	"fmt"
	"strings"
	"testing"
)

// Each row is commands with what they reply, at moments: the examples of netproto/resp/COMMANDS.md.
func TestSharesByTheirExamples(t *testing.T) {
	push := func(name string, n int) string { return strings.Repeat("QPUSH q x KEY "+name+"; ", n) }
	for name, text := range map[string]string{
		"weights":         "QSET q share-by key; QSHARE q a WEIGHT 10; " + push("a", 12) + push("b", 3) + "QPOP q COUNT 12 => aaaaaaaaaaba",
		"claims by turns": "QSET q share-by key; " + push("a", 3) + push("b", 3) + "QCLAIM q COUNT 4 => abab",
		"a new share is as if just served": "QSET q share-by key; " + push("a", 4) + push("b", 4) + "QPOP q COUNT 2 => ab; " + push("c", 1) +
			"QPOP q COUNT 3 => abc",
		"fewest claims first": "QSET q share-by key; " + push("a", 3) + "QCLAIM q COUNT 2 => aa; " + push("b", 3) + "QCLAIM q COUNT 3 => bba",
		"max-claimed":         "QSET q max-claimed 2; " + push("a", 3) + "QCLAIM q COUNT 3 => aa; QCLAIM q => ; QPOP q => a",
		"share-max-claimed":   "QSET q share-by key share-max-claimed 1; " + push("a", 2) + push("b", 2) + "QCLAIM q COUNT 4 => ab; QPOP q COUNT 9 => ab",
		"a limit of its own":  "QSET q share-by key share-max-claimed 1; QSHARE q a MAX-CLAIMED 2; " + push("a", 3) + "QCLAIM q COUNT 4 => aa",
		"no group at a limit": "QSET q max-claimed 9; " + push("a", 1) + "QCLAIM q GROUP => ERR",
		"rate":                "QSET q rate 10/1s; " + push("a", 3) + "QPOP q COUNT 3 => a; QPOP q => ; +89; QPOP q => ; +1; QPOP q => a; +99; QPOP q => ",
		"burst":               "QSET q rate 1/1m rate-burst 3; " + push("a", 5) + "QPOP q COUNT 5 => aaa; +59990; QPOP q COUNT 5 => a",
		"a raised rate":       "QSET q rate 1/1h; " + push("a", 2) + "QPOP q => a; QSET q rate 1/1s; +990; QPOP q => a",
		"share-rate":          "QSET q share-by key share-rate 1/1s; " + push("a", 2) + push("b", 1) + "QPOP q COUNT 3 => ab",
		"a group counts":      "QSET q rate 1/1s; " + push("a", 3) + push("b", 1) + "QPOP q GROUP => aaa; +2000; QPOP q => ; +1000; QPOP q => b",
		"cost":                "QSET q rate 1/1s; " + push("a", 2) + "QCLAIM q => a; QACK q 1 3 COST 5; +4980; QPOP q => ; +20; QPOP q => a",
		"a cost too high":     "QSET q rate 1/31d; " + push("a", 1) + "QCLAIM q => a; QACK q 1 2 COST 100 => ERR; QACK q 1 2",
		"hold":                "QSET q share-by key; " + push("a", 2) + push("b", 1) + "QCLAIM q SHARE a => a; QNACK q 1 4 HOLD 5000; QPOP q COUNT 9 => b; +5000; QPOP q COUNT 9 => aa",
		"hold without shares": push("a", 2) + "QCLAIM q => a; QNACK q 1 3 HOLD 5000; QPOP q => ; +5000; QPOP q => a",
		"a hold that ends":    "QSET q share-by key; " + push("a", 1) + "QSHARE q a HOLD 5000; QPOP q => ; QSHARE q a HOLD 0; QPOP q => a",
		"strict":              "QSET q strict yes; " + push("a", 2) + push("b", 1) + "QCLAIM q COUNT 9 => ab; QPOP q => ; QACK q 1 4; QPOP q => a",
		"strict and a delay":  "QSET q strict yes; QPUSH q x KEY a DELAY 9; " + push("a", 1) + "QPOP q => a",
		"strict and a return": "QSET q strict yes; " + push("a", 2) + "QCLAIM q => a; QNACK q 1 3 DELAY 9; QPOP q => ; +9; QPOP q => a",
		"strict and a group":  "QSET q strict yes; " + push("a", 3) + "QCLAIM q GROUP => aaa; " + push("a", 1) + "QACK q 1 4; QPOP q => ; QACK q 3 5 2 6; QPOP q => a",
		"a dead one goes on":  "QSET q strict yes; " + push("a", 2) + "QCLAIM q => a; QNACK q 1 3 DEAD; QPOP q => a",
		"a dead one holds":    "QSET q strict yes on-dead hold; " + push("a", 2) + "QCLAIM q => a; QNACK q 1 3 DEAD; QPOP q => ; QDEL q 1; QPOP q => a",
		"bound-share":         "QSET q share-by key bound-share 1; " + push("a", 1) + "QPUSH q x KEY a BLOCK 9 => FULL queue is full for one share; " + push("b", 1) + "QPOP q COUNT 9 => ab",
		"a change of shape":   push("a", 3) + push("b", 1) + "QCLAIM q COUNT 2 => aa; QSET q share-by key; QCLAIM q => b",
		"no shares":           "QSET q share-max-claimed 1 => ERR; QSET q on-dead hold dead-letter d => ERR; QSET q rate 1/0s => ERR; " + push("a", 1) + "QPOP q SHARE a => ERR",
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			now := int64(1_000_000)
			s.At(now, now, All)
			for i, step := range strings.Split(strings.TrimSpace(text), "; ") {
				command, want, told := strings.Cut(step, " => ")
				if ms, waits := strings.CutPrefix(command, "+"); waits {
					now += number(ms)
					s.At(now, now, All)
					continue
				}
				if command = strings.TrimSuffix(command, ";"); command == "" {
					continue
				}
				if got := brief(s.Do("c", strings.Fields(command))); told && got != strings.TrimSuffix(want, ";") {
					t.Fatalf("step %d: %s replies %q, want %q\n%s", i, command, got, want, s.Dump())
				}
			}
		})
	}
}

// brief is a reply in few letters: of packets their keys.
func brief(reply any) (text string) {
	list, _ := reply.([]any)
	for _, v := range list {
		text += fmt.Sprint(v.(Map)["key"])
	}
	if e, failed := reply.(Err); failed {
		text = string(e)
	}
	return text
}

// What a start knows of rates: a slow one goes on, a faster one has its burst spent, and shares of
// a slow one have one moment together.
func TestAStartKnowsOfRates(t *testing.T) {
	for set, waits := range map[string]int64{
		"rate 1/1h": 3_600_000 - 10, "rate 10/1s rate-burst 5": 100, "share-by key share-rate 1/20s": 20_000, "share-by key share-rate 2/1s": 500,
	} {
		s, at := New(), int64(1_000_000)
		s.At(at, at, All)
		for _, command := range []string{"QSET q " + set, "QMPUSH q 9 1 2 3 4 5 6 7 8 9 KEY a", "QPOP q"} {
			s.Do("c", strings.Fields(command))
		}
		s.Kept("0q", up(s.queues["0q"].due), 0)
		s.Restart(at, 100, -1, true)
		s.Spent(at)
		for _, wait := range []int64{waits - 1, waits} {
			s.At(at+wait, at+wait, All)
			if got := brief(s.Do("c", strings.Fields("QPOP q COUNT 5"))); got != map[bool]string{true: "a"}[wait == waits] {
				t.Errorf("%s: after %d ms it gives %q", set, wait, got)
			}
		}
	}
}
