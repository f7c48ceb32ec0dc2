package holdfast_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits of a file and of a function. Tests have neither.
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

// unfinished finds notes of work left to do. The words are put together here, so that this file
// does not break the rule.
func unfinished(s *source) []string {
	return matches(s, regexp.MustCompile(`\b(TO`+`DO|FIX`+`ME|XX`+`X)\b`), "is left open")
}

// machineBound finds paths that exist on one machine only.
func machineBound(s *source) []string {
	return matches(s, regexp.MustCompile(`(^|[\s"'`+"`"+`(=])/(wo`+`rk|ro`+`ot|ho`+`me|fa`+`rm)/`), "is a path of one machine")
}

// namesFlag finds comments and strings of libraries that name a command-line flag. A library
// returns an error; only the commands know which flag helps.
func namesFlag(s *source) []string {
	if s.file == nil || s.isTest() || !slices.Contains([]string{"storage", "index", "broker", "recovery", "netproto"}, s.layer()) {
		return nil
	}
	flag := regexp.MustCompile("(^|[\\s\"'`(])--[a-z]")
	var found []string
	report := func(at token.Pos, text string) {
		if flag.MatchString(text) {
			found = append(found, fmt.Sprintf("line %d names a command-line flag: only the commands do", s.line(at)))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			report(lit.Pos(), lit.Value)
		}
		return true
	})
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			report(c.Pos(), c.Text)
		}
	}
	return found
}

// maxCommentWidth is in characters, a tab counting as one.
const maxCommentWidth = 100

// wideComments finds lines with nothing but a comment that are too long. A drawing, whose lines
// begin with a tab, may be wider.
func wideComments(s *source) []string {
	if s.file == nil {
		return nil
	}
	prose := regexp.MustCompile(`^//($|[^\t])`)
	var found []string
	for i, line := range strings.Split(s.text, "\n") {
		text := strings.TrimSpace(line)
		width := utf8.RuneCountInString(line)
		if width > maxCommentWidth && prose.MatchString(text) {
			found = append(found, fmt.Sprintf("line %d: a comment of %d characters, at most %d", i+1, width, maxCommentWidth))
		}
	}
	return found
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
func TestLibrariesNameNoFlag(t *testing.T)           { enforce(t, namesFlag) }
func TestCommentsFitAScreen(t *testing.T)            { enforce(t, wideComments) }

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

func TestNamedFlagsAreFound(t *testing.T) {
	prove(t, namesFlag, map[string]planted{
		"in an error":             {"broker/x.go", "package broker\n\nconst e = \"give it room with --cache\"\n", "line 3"},
		"at the start":            {"netproto/x.go", "package netproto\n\nconst e = \"--pinpriq is not an address\"\n", "line 3"},
		"in a comment":            {"recovery/dump/x.go", "package dump\n\n// f is what --again calls.\nfunc f() {}\n", "line 3"},
		"behind code":             {"storage/x.go", "package storage\n\nconst a = 1 // of (--sync)\n", "line 3"},
		"a command may":           {"cmd/x/x.go", "package main\n\nconst e = \"use --force\"\n", ""},
		"a test may":              {"broker/x_test.go", "package broker\n\nconst e = \"use --force\"\n", ""},
		"a dash is no flag":       {"broker/x.go", "package broker\n\nconst e = \"a -- b, --- and x--y\" // i--\n", ""},
		"a decrement is no flag":  {"index/x.go", "package index\n\nfunc f(i int) { i-- }\n", ""},
		"the harness of fuzz may": {"fuzz/x.go", "package fuzz\n\nconst e = \"--data\"\n", ""},
	})
}

func TestWideCommentsAreFound(t *testing.T) {
	comment := func(n int) string { return "// " + strings.Repeat("é", n-3) + "\n" }
	prove(t, wideComments, map[string]planted{
		"at the margin": {"x/x.go", "package x\n\n" + comment(101), "line 3"},
		"indented":      {"x/x_test.go", "package x\n\nfunc f() {\n\t" + comment(100) + "}\n", "101 characters"},
		"at the limit":  {"x/x.go", "package x\n\n" + comment(100), ""},
		"a drawing":     {"x/x.go", "package x\n\n//\t" + comment(100), ""},
		"behind code":   {"x/x.go", "package x\n\nvar x int " + comment(101), ""},
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
