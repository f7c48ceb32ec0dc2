package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// source is a file of the project.
type source struct {
	path string // from the root, with slashes
	text string
	set  *token.FileSet
	file *ast.File // nil unless it is Go
}

// folder is the package's folder, "." for the root.
func (s *source) folder() string { return path.Dir(s.path) }

// layer is the top-level folder, "" for the root.
func (s *source) layer() string {
	top, _, below := strings.Cut(s.path, "/")
	if !below {
		return ""
	}
	return top
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) line(p token.Pos) int { return s.set.Position(p).Line }

func parse(t *testing.T, path, text string) *source {
	t.Helper()
	s := &source{path: path, text: text, set: token.NewFileSet()}
	if strings.HasSuffix(path, ".go") {
		file, err := parser.ParseFile(s.set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.file = file
	}
	return s
}

var parsed []*source // by the first of the rules

// project reads all files that people write: no build output, no data folders, no fuzz corpora.
func project(t *testing.T) []*source {
	t.Helper()
	if parsed != nil {
		return parsed
	}
	var all []*source
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if hidden := name != "." && base[0] == '.' && name != ".ci"; hidden || base == "bin" || base == "holdfast-data" || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		base := path.Base(name)
		if ext := path.Ext(base); ext != ".go" && ext != ".md" && base != "Makefile" && name != ".ci/run" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		all = append(all, parse(t, name, string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found %d files: the test must run in the root of the project", len(all))
	}
	parsed = all
	return all
}

// rule is a check of one file. It returns a sentence for each breach.
type rule func(s *source) []string

// enforce applies a rule to the project.
func enforce(t *testing.T, check rule) {
	t.Helper()
	for _, s := range project(t) {
		for _, breach := range check(s) {
			t.Errorf("%s: %s", s.path, breach)
		}
	}
}

// planted is a file that a rule must object to; without want it must not.
type planted struct {
	path, text string
	want       string // part of the one breach
}

// prove applies a rule to files that do and do not break it.
func prove(t *testing.T, check rule, files map[string]planted) {
	t.Helper()
	for name, f := range files {
		t.Run(name, func(t *testing.T) {
			breaches := check(parse(t, f.path, f.text))
			switch {
			case f.want == "" && len(breaches) > 0:
				t.Errorf("breaches %q, want none", breaches)
			case f.want != "" && (len(breaches) != 1 || !strings.Contains(breaches[0], f.want)):
				t.Errorf("breaches %q, want one that says %q", breaches, f.want)
			}
		})
	}
}
