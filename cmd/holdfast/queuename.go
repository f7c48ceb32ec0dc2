package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// refuseEmpty refuses a queue that is named by nothing, unless --empty allows it: mostly that is a
// variable of a script that is not set. It is called with each part of the command line.
func refuseEmpty(line *kong.Context, part *kong.Path) error {
	switch argument, flag := part.Positional, part.Flag; {
	case argument != nil && (argument.Name == "queue" || argument.Name == "to") && hasEmpty(argument) && !allowsEmpty(line):
		return errors.New("the name of the queue is empty: is a variable not set? A queue without a name needs --empty")
	case flag != nil && flag.Name == "queue" && hasEmpty(flag.Value):
		return errors.New("--queue: the pattern is empty: is a variable not set?")
	case flag != nil && flag.PlaceHolder == "QUEUE" && hasEmpty(flag.Value): // it would mean as much as no flag
		return fmt.Errorf("--%s: the name of the queue is empty: is a variable not set?", flag.Name)
	}
	return nil
}

// hasEmpty says that a text is empty, or one of several.
func hasEmpty(value *kong.Value) bool {
	if names, several := value.Target.Interface().([]string); several {
		return slices.Contains(names, "")
	}
	return value.Target.String() == ""
}

func allowsEmpty(line *kong.Context) bool {
	return slices.ContainsFunc(line.Flags(), func(f *kong.Flag) bool { return f.Name == "empty" && f.Target.Bool() })
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
