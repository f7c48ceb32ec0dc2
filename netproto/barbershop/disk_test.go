package barbershop_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// disk is a store whose free space and commits the test controls.
type disk struct {
	*storage.Store
	level atomic.Int32                 // a storage.Level
	apply atomic.Pointer[func() error] // called before a commit; an error is its outcome
	wait  atomic.Int64                 // of those who bring data
}

func (d *disk) Space() storage.Space {
	return storage.Space{Level: storage.Level(d.level.Load()), Wait: time.Duration(d.wait.Load())}
}

func (d *disk) Apply(b *content.Batch) error {
	if fn := d.apply.Load(); fn != nil {
		if err := (*fn)(); err != nil {
			return err
		}
	}
	return d.Store.Apply(b)
}

func (d *disk) onApply(fn func() error) { d.apply.Store(&fn) }

// waitFor polls a condition that another goroutine brings about.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("condition did not come true in time")
		}
	}
}

func TestOKWaitsForTheDisk(t *testing.T) {
	b := newBoard(t)
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	b.disk.onApply(func() error { entered <- struct{}{}; <-leave; return nil })
	c, other := b.dial(), b.dial()
	c.send("update 1 5\r\nnonsense\r\n")
	<-entered
	other.send("update 2 5\nnonsense\n")
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := c.conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("a reply left before its update was on disk")
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(limit))
	close(leave)
	c.want("OK\r\nERROR\r\n")
	other.want("OK\r\nERROR\r\n")
}

func TestWhileTheStorageIsBehindUpdatesWaitAndItemsAreGivenOut(t *testing.T) {
	b := newBoard(t)
	c, other := b.dial(), b.dial()
	c.ask("update 1 5", "OK")
	b.disk.wait.Store(int64(time.Hour))
	other.send("nonsense\nUPDATE 2 5\nupdate 3 5\n")
	other.want("ERROR\r\n")
	c.ask("PEEK", "+1")
	c.ask("next", "1")
	c.ask("PEEK", "+-1")
	b.disk.wait.Store(0)
	c.ask("nonsense", "ERROR")
	other.want("+OK\r\nOK\r\n")
}

func TestAFullDiskRefusesUpdatesAndGivesItemsOut(t *testing.T) {
	b := newBoard(t)
	c := b.dial()
	c.ask("update 1 5", "OK")
	b.disk.level.Store(int32(storage.NoPush))
	// The broker checks the level after each commit.
	waitFor(t, func() bool {
		c.send("update 2 1\n")
		return !strings.HasPrefix(c.line(), "OK")
	})
	const refused = "disk is nearly full: pushes are refused until space is freed, pops go on"
	c.ask("update 2 5", "SERVER_ERROR "+refused)
	c.ask("UPDATE 2 5", "-ERROR "+refused)
	c.ask("update 1 0", "OK") // needs no space
	c.ask("next", "1")
	b.disk.level.Store(int32(storage.Stop))
	waitFor(t, func() bool {
		c.send("next\n")
		return strings.HasPrefix(c.line(), "SERVER_ERROR")
	})
	c.ask("next", "SERVER_ERROR disk is full: nothing is accepted until space is freed")
	c.ask("UPDATE 2 1", "-ERROR disk is full: nothing is accepted until space is freed")
	b.disk.level.Store(int32(storage.Normal))
	waitFor(t, func() bool {
		c.send("update 3 5\n")
		return strings.HasPrefix(c.line(), "OK")
	})
}

// line reads one line.
func (c *client) line() string {
	c.t.Helper()
	var line strings.Builder
	for b := make([]byte, 1); !strings.HasSuffix(line.String(), "\n"); {
		if _, err := io.ReadFull(c.conn, b); err != nil {
			c.t.Fatalf("read a line: %v", err)
		}
		line.Write(b)
	}
	return line.String()
}

func TestWhileABatchFindsNoRoomTheOthersGetErrorsAtOnce(t *testing.T) {
	b := newBoard(t)
	full, tried := atomic.Bool{}, make(chan struct{}, 1)
	full.Store(true)
	b.disk.onApply(func() error {
		if !full.Load() {
			return nil
		}
		select {
		case tried <- struct{}{}:
		default:
		}
		return fmt.Errorf("no room: %w", storage.ErrFull)
	})
	first, other := b.dial(), b.dial()
	first.send("update 1 1\n")
	<-tried
	first.send("nonsense\n") // waits behind the update
	const stopped = "SERVER_ERROR disk is full: nothing is accepted until space is freed\r\n"
	other.send("next\nnonsense\nupdate 2 5\n")
	other.want(stopped + "ERROR\r\n" + stopped)
	const n = 30_000
	go func() { _, _ = io.WriteString(other.conn, strings.Repeat("stats\n", n)) }() // ends when it is read, or closed
	other.want(strings.Repeat(stopped, n))
	_ = first.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := first.conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("a reply left before its update was on disk")
	}
	_ = first.conn.SetReadDeadline(time.Now().Add(limit))
	full.Store(false)
	first.want("OK\r\nERROR\r\n")
	other.ask("next", "1")
}

func TestAServerThatHasFailedClosesItsConnections(t *testing.T) {
	b := newBoard(t)
	b.disk.onApply(func() error { return errors.New("device is gone") })
	c := b.dial()
	c.send("update 1 1\n")
	<-b.loop.Failed()
	c.send("next\n")
	if rest, _ := io.ReadAll(c.conn); len(rest) > 0 {
		t.Fatalf("got %q from a server that has failed, want nothing", rest)
	}
	b.failed = true
}
