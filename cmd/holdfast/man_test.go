package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestTheManualPageHasEveryCommandFlagAndVariable(t *testing.T) {
	page := command{}.run(t.Context(), "man").stdout
	_, shared, _ := strings.Cut(page, "\n.SH CONNECTION\n")
	shared, _, _ = strings.Cut(shared, "\n.SH COMMANDS\n")
	sections := make(map[string]string)
	for _, text := range strings.Split(page, "\n.SS \"holdfast ")[1:] {
		text = strings.ReplaceAll(text, `\-`, "-")
		name, _, _ := strings.Cut(strings.Trim(text, `"`), `"`)
		name = regexp.MustCompile(`( ?[<\[(]| --).*`).ReplaceAllString(name, "")
		sections[name] = text
	}
	for _, name := range allCommands() {
		flags := regexp.MustCompile(`(?m)^ {2,6}((?:-[a-z], )?--[^ \n]+)`).FindAllStringSubmatch(helps()[name], -1)
		for _, flag := range flags {
			if flag[1] != "-h, --help" && !strings.Contains(sections[name], "\\fB"+flag[1]+"\\fR") {
				t.Errorf("the page does not say %s of %s", flag[1], name)
			}
		}
		for _, variable := range variablesOf(name) {
			if !strings.Contains(sections[name]+shared, variable) {
				t.Errorf("the page does not name %s of %s", variable, name)
			}
		}
		if !strings.Contains(sections[name], "Example") {
			t.Errorf("the page has no example of %s", name)
		}
		delete(sections, name)
	}
	if strings.Count(page, "$HOLDFAST_TLS_CA") != 1 {
		t.Error("the page says more than once what all commands have")
	}
	for name := range sections {
		t.Errorf("the page has %q, which is no command", name)
	}
}

func TestSystemTheManualPageIsOneForGroff(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-z", "-Tutf8")
	cmd.Stdin = strings.NewReader(command{}.run(t.Context(), "man").stdout)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v, %s", err, out)
	}
}

func TestTextsOfTheManualPageAreNoRequests(t *testing.T) {
	m := &manual{}
	m.text(".so a file\n\n    'code \\n\n    a-b \"c\"")
	if got, want := m.page.String(), ".PP\n\\&.so a file\n.PP\n.RS 4\n.nf\n\\(aqcode \\en\na\\-b \\(dqc\\(dq\n.fi\n.RE\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
