package holdfast_test

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// The longest that fit a reader's head; tests are exempt from the first.
const (
	maxFileLines     = 500
	maxFunctionLines = 70
)

func tooLong(s *source) []string {
	if s.file == nil || s.isTest() {
		return nil
	}
	var found []string
	if n := strings.Count(s.text, "\n"); n > maxFileLines {
		found = append(found, fmt.Sprintf("%d lines, at most %d: does it still hold one noun?", n, maxFileLines))
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunctionLines {
			found = append(found, fmt.Sprintf("line %d: function %s has %d lines, at most %d", s.line(f.Pos()), f.Name.Name, n, maxFunctionLines))
		}
	}
	return found
}

// unfinished finds notes of things left to do. The words are put together here so that this file
// does not find itself.
func unfinished(s *source) []string {
	return matches(s, regexp.MustCompile(`\b(TO`+`DO|FIX`+`ME|XX`+`X)\b`), "is left open")
}

// machineBound finds paths that exist on one machine only.
func machineBound(s *source) []string {
	return matches(s, regexp.MustCompile(`(^|[\s"'`+"`"+`(=])/(wo`+`rk|ro`+`ot|ho`+`me|fa`+`rm)/`), "is a path of one machine")
}

func matches(s *source, words *regexp.Regexp, what string) []string {
	var found []string
	for i, line := range strings.Split(s.text, "\n") {
		if m := words.FindString(line); m != "" {
			found = append(found, fmt.Sprintf("line %d: %q %s", i+1, strings.TrimSpace(m), what))
		}
	}
	return found
}

func TestFilesAndFunctionsAreShort(t *testing.T)     { enforce(t, tooLong) }
func TestNothingIsLeftOpen(t *testing.T)             { enforce(t, unfinished) }
func TestNoPathOfOneMachineIsMentioned(t *testing.T) { enforce(t, machineBound) }

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, folder := range undocumented(project(t)) {
		t.Errorf("%s: no file has a package comment, expected one that says what the package is for", folder)
	}
}

func TestLongFilesAndFunctionsAreFound(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("\n", n) }
	prove(t, tooLong, map[string]planted{
		"file":               {"x/x.go", "package x" + lines(501), "501 lines"},
		"function":           {"x/x.go", "package x\n\nfunc f() {" + lines(70) + "}\n", "function f has 71"},
		"method":             {"x/x.go", "package x\n\nfunc (t T) f() {" + lines(70) + "}\n", "function f has 71"},
		"file at the limit":  {"x/x.go", "package x" + lines(500), ""},
		"function at it":     {"x/x.go", "package x\n\nfunc f() {" + lines(69) + "}\n", ""},
		"a test may be long": {"x/x_test.go", "package x" + lines(501), ""},
	})
}

func TestOpenEndsAreFound(t *testing.T) {
	prove(t, unfinished, map[string]planted{
		"in Go":   {"x/x.go", "package x // TO" + "DO: more\n", "line 1"},
		"in text": {"README.md", "words\n\nFIX" + "ME\n", "line 3"},
		"a word":  {"README.md", "mastodon, TODOS\n", ""},
	})
}

func TestPathsOfOneMachineAreFound(t *testing.T) {
	prove(t, machineBound, map[string]planted{
		"quoted":   {"x/x.go", "package x\n\nconst dir = \"/ro" + "ot/data\"\n", "line 3"},
		"in text":  {"README.md", "see /wo" + "rk/main\n", "line 1"},
		"relative": {"README.md", "the net" + "wo" + "rk/main and a/ho" + "me/b\n", ""},
	})
}

// undocumented returns the folders with code whose package clauses have no comment.
func undocumented(all []*source) []string {
	said := make(map[string]bool)
	for _, s := range all {
		if s.file != nil && !s.isTest() {
			said[s.folder()] = said[s.folder()] || s.file.Doc != nil
		}
	}
	var found []string
	for folder, ok := range said {
		if !ok {
			found = append(found, folder)
		}
	}
	return found
}

func TestPackagesWithoutCommentAreFound(t *testing.T) {
	bare, said := parse(t, "x/a.go", "package x\n"), parse(t, "x/b.go", "// Package x is.\npackage x\n")
	if got := undocumented([]*source{bare}); len(got) != 1 || got[0] != "x" {
		t.Errorf("a package without a comment: found %q, want x", got)
	}
	if got := undocumented([]*source{bare, said}); len(got) != 0 {
		t.Errorf("a package with one comment: found %q, want nothing", got)
	}
}
