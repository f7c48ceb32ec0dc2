package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// elsewhere are words that other programs have for a command, with those of this one.
var elsewhere = map[string][]string{
	"push":    {"send", "enqueue", "put", "add"},
	"claim":   {"reserve", "take", "receive"},
	"redrive": {"requeue", "replay", "kick"},
	"delete":  {"del", "remove"},
	"purge":   {"flush", "clear"},
	"queues":  {"ls", "topics"},
	"stats":   {"len", "count", "size", "depth"},
	"list":    {"cat"},
	"load":    {"import"},
	"dump":    {"export"},
	"cancel":  {"kill"},
	"status":  {"info", "ping"},
	"tail":    {"monitor", "watch", "log", "logs", "events"},
	"serve":   {"server", "start", "run"},
}

// otherwise are words for what needs no command of its own here, with what does it.
var otherwise = map[string]string{
	"top":      `"holdfast stats --watch" shows the busiest queues`,
	"create":   `the first push makes a queue, and so does "holdfast set"`,
	"problems": `"holdfast status" says what needs somebody`,
	"schedule": `"holdfast push --at" or --delay pushes for later; what comes again and again needs a timer such as cron`,
}

// unknownCommand is the error of a word that is no command. It names the one that may be meant.
func unknownCommand(word string, commands []string) error {
	for command, words := range elsewhere {
		if slices.Contains(words, word) {
			return fmt.Errorf("there is no command %.80q: %q does that here", word, command)
		}
	}
	if slices.Contains([]string{"stop", "shutdown", "restart"}, word) {
		return fmt.Errorf("there is no command %.80q: send SIGTERM to stop a server", word)
	}
	if say := otherwise[word]; say != "" {
		return fmt.Errorf("there is no command %.80q: %s", word, say)
	}
	return fmt.Errorf("there is no command %.80q%s", word, terminal.Nearest(word, commands))
}

var noValue = regexp.MustCompile(`^(.*): expected .* value but got "(.*)" \((.*)\)(?:; perhaps try .*)?$`)

// worded says in other words what the parser finds wrong with a command line.
func worded(err error, args []string, app *kong.Node) error {
	var commands []string
	for _, c := range app.Children {
		commands = append(append(commands, c.Name), c.Aliases...)
	}
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' && !slices.Contains(commands, args[0]) {
		return unknownCommand(args[0], commands)
	}
	text := strings.Replace(err.Error(), `must be one of "",`, `must be one of `, 1)
	if parse := new(kong.ParseError); errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		command := parse.Context.Selected()
		text = strings.TrimPrefix(text, command.Path()+": ") // who asked knows the command
		argument, unexpected := strings.CutPrefix(text, "unexpected argument ")
		name, _, _ := strings.Cut(argument, "=")
		if unexpected && slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			text += ": write --" + argument
		}
	}
	switch found := noValue.FindStringSubmatch(text); {
	case found == nil:
	case found[2] == "EOL":
		text = found[1] + ": expected a value, got the end of the line"
	default:
		text = fmt.Sprintf("%s: expected a value, got %q: one that begins with - is written as %s=%s", found[1], found[2], found[1], found[2])
	}
	return terminal.Reword(text, err)
}
