package peer

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

func TestAnOwnerIsGoneWhileItsProcessDoesNotAnswer(t *testing.T) {
	o := NewOwner()
	go o.Attend(t.Context(), NewClient(nil))
	wait := func(gone bool) {
		t.Helper()
		for begun := time.Now(); o.Gone(time.Hour) != gone; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("gone: %v", !gone)
			}
		}
	}
	free := listen(t)
	address := free.Addr().String()
	must(t, free.Close())
	for range 2 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		s, served := New(Config{Logger: slog.New(slog.DiscardHandler)}), make(chan error, 1)
		go func() { served <- s.Serve(l) }() // ends with Close
		o.Set(address)
		wait(false)
		s.Close()
		must(t, <-served)
		wait(true)
	}
	o.Set("")
	wait(false)
}

func TestAnOwnerThatDoesNotAnswerIsSilent(t *testing.T) {
	answers := make(chan bool, 1)
	answers <- true
	address := serveNode(t, Config{Node: func() Node {
		if is := <-answers; !is {
			<-t.Context().Done() // its process lives, and the way there is closed
		}
		answers <- true
		return Node{}
	}})
	o := NewOwner()
	o.Set(address)
	go o.Ask(t.Context(), NewClient(nil))
	<-answers
	answers <- false
	for !o.Silent(0) {
		time.Sleep(time.Millisecond)
	}
	if o.Silent(time.Hour) {
		t.Error("it was silent for an hour")
	}
}

func TestAnOwnerOfAnEarlierVersionIsNotTakenForGone(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	err := NewClient(nil).stay(t.Context(), s.Listener.Addr().String(), func() { t.Error("it stays") })
	if unreached := (*url.Error)(nil); err == nil || errors.As(err, &unreached) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestAnOwnerThatIsUnreachedForLongIsNotGone(t *testing.T) {
	o := NewOwner()
	o.gone = time.Now().Add(-4 * time.Second)
	if o.Gone(3*time.Second) || !o.Gone(5*time.Second) {
		t.Error("gone for another time than was asked for")
	}
}
