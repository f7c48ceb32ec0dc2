package connection

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestOnlyARequestThatWasNotSentIsCalledSo(t *testing.T) {
	const notSent = "the request was not sent"
	var s WorkQueue
	if err := s.Explain(t.Context(), fmt.Errorf("connect: %w", syscall.EPIPE)); !strings.Contains(err.Error(), notSent) {
		t.Errorf("before a request: %v", err)
	}
	lost := fmt.Errorf("%w: %w", client.ErrUnknown, syscall.EPIPE)
	if err := s.Explain(t.Context(), lost); strings.Contains(err.Error(), notSent) {
		t.Errorf("in a request: %v", err)
	}
}

func TestACommandOfWorkUsesTheSameDatabase(t *testing.T) {
	c := WorkQueue{Redis: "here:1", DB: 7}
	if got := c.Variables(); !slices.Contains(got, "HOLDFAST_DB=7") {
		t.Errorf("variables are %q, want the database", got)
	}
}
