package holdfast_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// events are the names of the lines that a server logs, with their levels. A line of which the name
// is not a literal tells something that stands in its attributes, and is not found.
func events(t *testing.T) map[string]string {
	found := make(map[string]string)
	for _, s := range project(t) {
		if s.file == nil || s.isTest() || !logsForServer(s.path) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			name, literal := call.Args[0].(*ast.BasicLit)
			if ok && literal && name.Kind == token.STRING && slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) {
				text, _ := strconv.Unquote(name.Value)
				found[text] = strings.ToLower(method.Sel.Name)
			}
			return true
		})
	}
	return found
}

// logsForServer says whether a file may log for a server.
func logsForServer(path string) bool {
	for _, folder := range []string{"broker/", "netproto/", "recovery/", "storage/", "cmd/daemon/", "cmd/cluster/"} {
		if strings.HasPrefix(path, folder) {
			return !strings.HasPrefix(path, "netproto/client/")
		}
	}
	return false
}

func TestEachLogEventIsDocumented(t *testing.T) {
	const document = "cmd/holdfast/OPERATION.md"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Log events\n")
	section, _, _ = strings.Cut(section, "\n## ")
	told := make(map[string]string)
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(cells[1], " `") {
			told[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[2])
		}
	}
	logged := events(t)
	for _, name := range slices.Sorted(maps.Keys(logged)) {
		if told[name] == "" {
			t.Errorf("%s has no row for `%s`, of level %s", document, name, logged[name])
		}
	}
	for name, level := range told {
		if logged[name] == "" {
			t.Errorf("%s tells of `%s`, which nothing logs", document, name)
		} else if !strings.Contains(level, logged[name]) {
			t.Errorf("%s: `%s` is of level %s, want %s", document, name, level, logged[name])
		}
	}
}

// kinds are the values of broker.EventKind.
func kinds(t *testing.T) map[string]bool {
	found := make(map[string]bool)
	for _, s := range project(t) {
		if s.file == nil || s.isTest() || !strings.HasPrefix(s.path, "broker/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "EventKind" {
				text, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				found[text] = true
			}
			return true
		})
	}
	return found
}

func TestEachEventOfTheChannelsIsDocumented(t *testing.T) {
	all := kinds(t)
	for document, heading := range map[string]string{"netproto/resp/COMMANDS.md": "\n### Events\n", "cmd/holdfast/OPERATION.md": "\n## Being told\n"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		told := make(map[string]bool)
		for line := range strings.Lines(section) {
			if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(cells[1], " `") {
				for name := range strings.SplitSeq(cells[1], ",") {
					told[strings.Trim(name, " `")] = true
				}
			}
		}
		for name := range told {
			if !all[name] {
				t.Errorf("%s tells of `%s`, which is no event", document, name)
			}
		}
		for name := range all {
			if !told[name] && strings.HasPrefix(document, "netproto/") {
				t.Errorf("%s has no row for `%s`", document, name)
			}
		}
		if len(told) == 0 {
			t.Errorf("%s tells of no event under %q", document, heading)
		}
	}
}
