package holdfast_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A package whose doc.go lists its files in layers reads from top to bottom: a file uses what those
// listed before it declare. So many pairs of files may run against that as do today, and the
// numbers may only fall.
func layered() map[string]int {
	return map[string]int{"index": 55, "index/tree": 0, "broker": 38, "cmd/ask": 2, "cmd/config": 4, "cmd/connection": 0, "cmd/folder": 1, "cmd/holdfast": 3, "cmd/terminal": 1, "netproto/resp": 14, "storage": 12}
}

// references returns the pairs of files of a package of which the first uses what the second
// declares: types, functions, methods, fields. It needs no other package, so what goes through the
// types of those it does not see.
func references(files map[string]string) (map[[2]string]bool, error) {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	ignored := types.Config{Error: func(error) {}, Importer: noPackage{}}
	pkg, _ := ignored.Check("p", set, parsed, &info)
	pairs := make(map[[2]string]bool)
	for at, o := range info.Uses {
		isLocal := o.Parent() != nil && o.Parent() != pkg.Scope()
		from, to := set.Position(at.Pos()).Filename, set.Position(o.Pos()).Filename
		if o.Pkg() == pkg && !isLocal && from != to {
			pairs[[2]string{from, to}] = true
		}
	}
	return pairs, nil
}

// noPackage finds no package.
type noPackage struct{}

func (noPackage) Import(string) (*types.Package, error) { return nil, errors.New("not looked for") }

// against returns the references between files that run against the order of doc.go, and how many
// references there are.
func against(files map[string]string) (found []string, all int, err error) {
	place := make(map[string]int)
	for i, line := range regexp.MustCompile(`(?m)^//\t(\w+\.go) `).FindAllStringSubmatch(files["doc.go"], -1) {
		place[line[1]] = i + 1
	}
	for name := range files {
		if place[name] == 0 && name != "doc.go" {
			return nil, 0, fmt.Errorf("doc.go does not list %s", name)
		}
	}
	pairs, err := references(files)
	for p := range pairs {
		if place[p[0]] < place[p[1]] {
			found = append(found, p[0]+" uses "+p[1])
		}
	}
	slices.Sort(found)
	return found, len(pairs), err
}

func TestPackagesReadFromTopToBottom(t *testing.T) {
	packages := make(map[string]map[string]string)
	for _, s := range project(t) {
		if _, is := layered()[s.folder()]; is && s.file != nil && !s.isTest() {
			if packages[s.folder()] == nil {
				packages[s.folder()] = make(map[string]string)
			}
			packages[s.folder()][path.Base(s.path)] = s.text
		}
	}
	for folder, most := range layered() {
		switch found, all, err := against(packages[folder]); {
		case err != nil:
			t.Errorf("%s: %v", folder, err)
		case all < 5 || len(found) > most:
			t.Errorf("%s: %d of %d references run against the order of doc.go, at most %d may:\n%s",
				folder, len(found), all, most, strings.Join(found, "\n"))
		}
	}
}

func TestReferencesAgainstTheOrderAreFound(t *testing.T) {
	files := map[string]string{
		"doc.go":  "// Package p is an example:\n//\n//\tlow.go  state\n//\thigh.go verbs\npackage p\n",
		"low.go":  "package p\n\ntype thing struct{ n int }\n\nfunc (x *thing) low() { x.high() }\n",
		"high.go": "package p\n\nimport \"sort\"\n\nfunc (x *thing) high() { n := x.n; sort.Ints(nil); x.low(); _ = n }\n",
	}
	found, all, err := against(files)
	if err != nil || all != 2 || !slices.Equal(found, []string{"low.go uses high.go"}) {
		t.Errorf("found %q of %d, %v", found, all, err)
	}
	files["other.go"] = "package p\n"
	if _, _, err := against(files); err == nil {
		t.Error("a file that is not listed was not found")
	}
}
