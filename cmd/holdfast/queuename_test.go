package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// Each command that takes the name of a queue is asked with an empty one.
func TestAnEmptyNameOfAQueueIsRefused(t *testing.T) {
	t.Parallel()
	parser, err := (&program{Process: terminal.Process{Env: func(string) (string, bool) { return "", false }}}).parser(t.Context(), nil, nil, new(bool))
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, command := range parser.Model.Leaves(false) {
		for i, argument := range command.Positional {
			if argument.Name != "queue" && argument.Name != "to" {
				continue
			}
			all++
			args := append([]string{command.Name}, slices.Repeat([]string{"q"}, i)...)
			args = append(append(args, ""), required(command.Positional[i+1:])...)
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				oneErrorLine(t, cli(t, args...), exitUsage, "the name of the queue is empty")
			})
		}
	}
	if all < 25 {
		t.Errorf("%d arguments name a queue, expected 25 or more", all)
	}
	for line, want := range map[string]string{
		"claim a ":                            "the name of the queue is empty",
		"redrive a --to ":                     "--to: the name of the queue is empty",
		"load --to-server file --to-queue ":   "--to-queue: the name of the queue is empty",
		"load --to-server file --queue ":      "--queue: the pattern is empty",
		"backup --to file --queue a --queue ": "--queue: the pattern is empty",
		"dump folder --queue ":                "--queue: the pattern is empty",
	} {
		oneErrorLine(t, cli(t, strings.Split(line, " ")...), exitUsage, want)
	}

	s := serve(t, t.TempDir())
	s.must(t, "push", "", "x", "--empty")
	if got := s.must(t, "pop", "--empty", ""); got != "x\n" {
		t.Errorf("popped %q", got)
	}
}

// required is a value for each argument that must be there.
func required(arguments []*kong.Positional) (values []string) {
	for _, argument := range arguments {
		if argument.Required {
			values = append(values, cmp.Or(map[string]string{"time": "1s", "name=value": "lease=1s", "name": "lease"}[argument.Name], "1"))
		}
	}
	return values
}
