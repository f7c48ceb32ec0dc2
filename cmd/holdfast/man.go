package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// manCmd prints what the help says of all commands as a manual page.
type manCmd struct{}

func (c *manCmd) Help() string {
	return `Prints the manual page of this program, holdfast(1), for man.

Examples:

    holdfast man > /usr/local/share/man/man1/holdfast.1
    holdfast man | man -l -`
}

func (c *manCmd) Run(ctx *kong.Context, p *terminal.Process, s *config.Sources) error {
	app := ctx.Model
	m := &manual{helpOf: s.HelpWithVariable, shared: make(map[string]string)}
	m.printf(".TH HOLDFAST 1 \"\" \"holdfast %s\" \"User Commands\"\n.nh\n.ad l\n", release) // names are not hyphenated
	m.printf(".SH NAME\nholdfast \\- durable priority queue server and its client\n")
	m.printf(".SH SYNOPSIS\n.B holdfast\n.I COMMAND\n[flags] [arguments]\n")
	m.printf(".SH DESCRIPTION\n")
	m.text(app.Help)
	m.printf(".SH CONNECTION\nThese flags are of all commands that name them.\n")
	m.connection(app.Children)
	m.printf(".SH COMMANDS\n")
	m.commands(app.Children)
	_, err := io.WriteString(p.Stdout, m.page.String())
	return err
}

// manual is a page in the making, in the language of man(7).
type manual struct {
	page   strings.Builder
	helpOf func(value *kong.Value) string
	shared map[string]string // what is said of flags once, by their names
}

func (m *manual) printf(format string, a ...any) { fmt.Fprintf(&m.page, format, a...) }

// connection prints each of the flags that many commands have, once.
func (m *manual) connection(nodes []*kong.Node) {
	for _, node := range nodes {
		for _, flag := range slices.Concat(node.AllFlags(true)...) {
			isShared := flag.Group != nil && flag.Group.Key == "Connection" || flag.Name == "context" && config.IsClient(node)
			if isShared && m.shared[flag.Name] == "" {
				m.shared[flag.Name] = m.helpOf(flag.Value)
				m.item(nameOf(flag), flag.Value)
			}
		}
		m.connection(node.Children)
	}
}

// commands prints each command, and after it what it has below it.
func (m *manual) commands(nodes []*kong.Node) {
	for _, node := range nodes {
		if !node.Hidden {
			m.command(node)
			m.commands(node.Children)
		}
	}
}

func (m *manual) command(node *kong.Node) {
	m.printf(".SS \"%s\"\n", roff("holdfast "+node.Summary()))
	m.text(node.Help)
	m.text(node.Detail)
	for _, argument := range node.Positional {
		m.item(argument.Summary(), argument)
	}
	var shared []string
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		switch {
		case flag.Name == "help", flag.Name == "context" && !config.IsClient(node): // as all commands have it
		case m.shared[flag.Name] == m.helpOf(flag.Value):
			shared = append(shared, `\fB`+roff(nameOf(flag))+`\fR`)
		default:
			m.item(nameOf(flag), flag.Value)
		}
	}
	if len(shared) > 0 {
		m.printf(".PP\nSee CONNECTION for %s.\n", strings.Join(shared, ", "))
	}
}

// nameOf is a flag as people write it.
func nameOf(flag *kong.Flag) string {
	name := "--" + flag.Name
	if flag.Tag.Negatable != "" {
		name = "--[no-]" + flag.Name
	}
	if flag.Short != 0 {
		name = "-" + string(flag.Short) + ", " + name
	}
	if !flag.IsBool() {
		name += "=" + flag.FormatPlaceHolder()
	}
	return name
}

func (m *manual) item(name string, value *kong.Value) {
	m.printf(".TP\n\\fB%s\\fR\n%s\n", roff(name), line(m.helpOf(value)))
}

// text prints paragraphs, as help has them: an empty line between two, and four spaces before code.
func (m *manual) text(help string) {
	for _, paragraph := range strings.Split(help, "\n\n") {
		code, isCode := strings.CutPrefix(paragraph, "    ")
		if !isCode {
			m.printf(".PP\n%s\n", line(paragraph))
			continue
		}
		m.printf(".PP\n.RS 4\n.nf\n")
		for _, each := range strings.Split(code, "\n") {
			m.printf("%s\n", line(strings.TrimPrefix(each, "    ")))
		}
		m.printf(".fi\n.RE\n")
	}
}

// line is a text that is no request of man(7), whatever it begins with.
func line(text string) string {
	text = roff(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// roff is a text with the characters as they are. A plain hyphen would be one of typography.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ", "'", `\(aq`).Replace(text)
}
