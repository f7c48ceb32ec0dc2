package main

import (
	"context"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// The frame of cmd/ask finds what a command asks by its method, which no compiler looks for.
func TestCommandsInTheFrameAsk(t *testing.T) {
	parser, err := (&program{Process: terminal.Process{Env: func(string) (string, bool) { return "", false }}}).parser(t.Context(), nil, nil, new(bool))
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, command := range parser.Model.Leaves(false) {
		if _, isFramed := command.Target.Type().FieldByName("asking"); !isFramed {
			continue
		}
		all++
		if _, ok := command.Target.Addr().Interface().(interface {
			Ask(context.Context, *terminal.Process, *client.Client) error
		}); !ok {
			t.Errorf("%s has the frame's flags, but no Ask", command.Name)
		}
	}
	if all < 25 {
		t.Errorf("%d commands are in the frame, expected 25 or more", all)
	}
}
