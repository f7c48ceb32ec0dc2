package cell_test

import (
	"context"
	"testing"
	"time"
)

func TestAHandOverEndsTheClaimThatItIsOf(t *testing.T) {
	client, l := alone(t)
	other := newLog(client, "b")
	term := claim(t, l, 0)
	owner, err := other.Owner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.HandOver(t.Context(), owner.Fence-1, "b"); err == nil {
		t.Error("a claim that is over is handed over")
	}
	if to, _, err := other.HandedTo(t.Context()); to != "" || err != nil {
		t.Errorf("handed to %q, %v; want nobody", to, err)
	}
	set(t, client, "handover", "by hand")
	asked := make(chan error)
	go func() { // ends with the hand-over
		_, err := term.HandedOver(t.Context())
		asked <- err
	}()
	select {
	case err := <-asked:
		t.Fatalf("what is no name ends the wait for one: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := other.HandOver(t.Context(), owner.Fence, "b"); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; err != nil {
		t.Error(err)
	}
	if to, err := term.HandedOver(t.Context()); to != "b" || err != nil {
		t.Errorf("handed over to %q, %v; want b", to, err)
	}
	if to, _, err := other.HandedTo(t.Context()); to != "b" || err != nil {
		t.Errorf("handed to %q, %v; want b", to, err)
	}
	if err := term.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if to, err := claim(t, l, 0).HandedOver(ctx); err == nil {
		t.Errorf("a later claim is handed over to %q", to)
	}
}
