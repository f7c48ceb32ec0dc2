package resp

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// longLook is far more elements than a slice of a look takes.
const longLook = 10_000

func TestWhatStaysDuringALongLookComesOnceAndInOrder(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	c.do(numbers(longLook, "RPUSH", "l")...)
	pairs := []string{"HSET", "h"}
	for i := range longLook {
		pairs = append(pairs, strconv.Itoa(i), "0")
	}
	c.do(pairs...)
	const tagged = longLook / 5
	for i := range tagged {
		c.do("QPUSH", "numbered", strconv.Itoa(tagged-1-i), "TAG", "n", strconv.Itoa(i%7))
	}

	equal := append([]string{"RPUSH", "equal"}, strings.Fields(strings.Repeat("x y ", longLook/2))...)
	c.do(equal...)

	w, turns := d.dial(), 0
	changes := []string{
		"LPUSH l left", "RPUSH l right", "LINSERT l BEFORE 9990 inserted", "LINSERT l AFTER 10 inserted", "LREM l 0 inserted", "LPOP l", "RPOP l",
		"QPUSH numbered new TAG n tag", "LPUSH equal left", "LPOP equal", "HDEL h field", "HSET h field tag",
	}
	d.disk.turn = func() {
		round := turns / len(changes)
		values := strings.NewReplacer("tag", strconv.Itoa(round%7), "field", strconv.Itoa(2*round%longLook))
		w.send(values.Replace(changes[turns%len(changes)]) + "\r\n")
		turns++
	}
	want := numbers(longLook)
	stays := func(all []string) []string {
		return slices.DeleteFunc(all, func(e string) bool { return slices.Contains([]string{"left", "right", "inserted", "new"}, e) })
	}
	for range 10 {
		if got := stays(bulksOf(c, "LRANGE", "l", "0", "-1")); !slices.Equal(got, want) {
			t.Fatalf("LRANGE replied %d elements that stay, want %d, in order", len(got), longLook)
		}
		if got := stays(bulksOf(c, "LRANGE", "numbered", "0", "-1")); !slices.Equal(got, want[:tagged]) {
			t.Fatalf("LRANGE of packets with tags replied %d that stay, want %d, in order", len(got), tagged)
		}
		for _, rank := range []string{"1", "-1"} {
			at := numbersOf(bulksOf(c, "LPOS", "equal", "x", "RANK", rank, "COUNT", "0"))
			if slices.Sort(at); len(at) != longLook/2 {
				t.Fatalf("LPOS from %s replied with %d positions", rank, len(at))
			}
			for i, p := range at { // 2i, or one more while there is one at the left
				if p/2 != i {
					t.Fatalf("LPOS from %s replied with %d as position %d", rank, p, i)
				}
			}
		}
		fields := bulksOf(c, "HKEYS", "h")
		slices.Sort(fields)
		odd := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { n, err := strconv.Atoi(f); return err != nil || n%2 == 0 })
		if len(odd) != longLook/2 || len(slices.Compact(fields)) != len(fields) {
			t.Fatalf("HKEYS replied %d of %d fields that stay, %d altogether", len(odd), longLook/2, len(fields))
		}
	}
}

func TestALookInATransactionIsMadeAtOnce(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	c.do(numbers(longLook, "RPUSH", "l")...)
	c.expect([2]string{"MULTI", "+OK"}, [2]string{"LRANGE l 0 -1", "+QUEUED"}, [2]string{"LPUSH l x", "+QUEUED"}, [2]string{"KEYS *", "+QUEUED"})
	got := c.do("EXEC").String()
	if want := ` :10001 ["l"]]`; !strings.HasPrefix(got, `[["0" "1" `) || !strings.HasSuffix(got, `"9999"]`+want) {
		t.Errorf("EXEC replied %.40s … %s", got, got[max(0, len(got)-40):])
	}
}

func TestALookWithoutAReplyRepliesNothing(t *testing.T) {
	d := newOther(t)
	c := d.dial()
	c.do(numbers(longLook, "RPUSH", "l")...)
	c.send(request("CLIENT", "REPLY", "SKIP"))
	c.send(request("LRANGE", "l", "0", "-1"))
	c.expect([2]string{"LLEN l", ":10000"})
}

// numbersOf reads words, those of an integer reply too.
func numbersOf(words []string) (all []int) {
	for _, w := range words {
		n, _ := strconv.Atoi(strings.TrimPrefix(w, ":"))
		all = append(all, n)
	}
	return all
}

// bulksOf sends a command and returns the words of its reply, which is an array of bulks.
func bulksOf(c *conn, args ...string) []string {
	c.t.Helper()
	all := strings.Fields(strings.Trim(c.do(args...).String(), "[]"))
	for i, w := range all {
		all[i] = strings.Trim(w, `"`)
	}
	return all
}
