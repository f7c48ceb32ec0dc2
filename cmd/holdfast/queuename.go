package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// refuseEmpty refuses an argument that names a queue and is empty, unless --empty allows it: mostly
// it is a variable of a script that is not set. It is called with each part of the command line.
func refuseEmpty(line *kong.Context, part *kong.Path) error {
	argument := part.Positional
	if argument == nil || argument.Name != "queue" && argument.Name != "to" {
		return nil
	}
	for _, flag := range line.Flags() {
		if flag.Name == "empty" && flag.Target.Bool() {
			return nil
		}
	}
	names, several := argument.Target.Interface().([]string)
	if !several {
		names = []string{argument.Target.String()}
	}
	if slices.Contains(names, "") {
		return errors.New("the name of the queue is empty: is a variable not set? A queue without a name needs --empty")
	}
	return nil
}

// nameQueue adds the name of the queue to an error that says that there is none. A command with
// several queues has done so.
func nameQueue(line *kong.Context, err error) error {
	if !errors.Is(err, client.ErrNoQueue) {
		return err
	}
	for _, part := range line.Path {
		if part.Positional != nil && part.Positional.Name == "queue" && !part.Positional.IsSlice() {
			return fmt.Errorf("queue %.80q: %w", part.Positional.Target.String(), err)
		}
	}
	return err
}
