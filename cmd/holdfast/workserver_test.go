package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestOnlyARequestThatWasNotSentIsCalledSo(t *testing.T) {
	const notSent = "the request was not sent"
	var s workServer
	if err := s.explain(t.Context(), fmt.Errorf("connect: %w", syscall.EPIPE)); !strings.Contains(err.Error(), notSent) {
		t.Errorf("before a request: %v", err)
	}
	lost := fmt.Errorf("%w: %w", client.ErrUnknown, syscall.EPIPE)
	if err := s.explain(t.Context(), lost); strings.Contains(err.Error(), notSent) {
		t.Errorf("in a request: %v", err)
	}
}
