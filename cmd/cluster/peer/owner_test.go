package peer

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAnOwnerIsGoneWhileItsProcessDoesNotAnswer(t *testing.T) {
	o := NewOwner()
	go o.Attend(t.Context(), NewClient(nil))
	wait := func(gone bool) {
		t.Helper()
		for begun := time.Now(); o.Gone() != gone; time.Sleep(time.Millisecond) {
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

func TestAnOwnerOfAnEarlierVersionIsNotGone(t *testing.T) {
	asked := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	o := NewOwner()
	o.Set(s.Listener.Addr().String())
	go o.Attend(t.Context(), NewClient(nil))
	for range 2 { // the second time it has heard the first answer
		if path := <-asked; path != "/stay" || o.Gone() {
			t.Errorf("asked for %s, gone: %v", path, o.Gone())
		}
	}
}
