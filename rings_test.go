package holdfast_test

import (
	"cmp"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outside are calls that a test of the first ring does not reach: they start processes, need disks
// of this machine, or read the heap, which other tests change.
func outside() []string {
	return []string{"exec.Command", "exec.CommandContext", "unix.Mount", "runtime.GC", "runtime.ReadMemStats"}
}

// secondRing is the variable of the Makefile that names rooms whose tests all belong to it.
var secondRing = regexp.MustCompile(`(?m)^SYSTEM := (.*)$`)

// isSystem says that the tests of a room are left to "make system".
func isSystem(makefile, room string) bool {
	for _, name := range strings.Fields(secondRing.FindStringSubmatch(makefile)[1]) {
		name, below := strings.CutSuffix(strings.TrimPrefix(name, "./"), "/...")
		if room == name || below && strings.HasPrefix(room, name+"/") {
			return true
		}
	}
	return false
}

// uses returns the functions of a room, each with all names that stand in it.
func uses(files []*source) map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	for _, s := range files {
		packages := make(map[string]string) // by their names in the file
		for _, i := range s.file.Imports {
			if i.Name != nil {
				packages[i.Name.Name] = path.Base(strings.Trim(i.Path.Value, `"`))
			}
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			names := all[f.Name.Name]
			if names == nil {
				names = make(map[string]bool)
				all[f.Name.Name] = names
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok {
						names[cmp.Or(packages[x.Name], x.Name)+"."+n.Sel.Name] = true
					}
				case *ast.Ident:
					names[n.Name] = true
				}
				return true
			})
		}
	}
	return all
}

// reaches returns the first of the calls that a function makes, or one that it calls, or "".
func reaches(all map[string]map[string]bool, f string, calls []string, seen map[string]bool) string {
	seen[f] = true
	for _, c := range calls {
		if all[f][c] {
			return c
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all[f])) {
		if !seen[name] && all[name] != nil {
			if c := reaches(all, name, calls, seen); c != "" {
				return c
			}
		}
	}
	return ""
}

// strays returns the tests of a room that belong to the second ring by what they reach, and not by
// their names, each with what it reaches.
func strays(files []*source) map[string]string {
	all, found := uses(files), make(map[string]string)
	for name := range all {
		if strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "TestSystem") && name != "TestMain" {
			if c := reaches(all, name, outside(), make(map[string]bool)); c != "" {
				found[name] = c
			}
		}
	}
	return found
}

func TestTheFirstRingStartsNothingAndReadsNoHeap(t *testing.T) {
	rooms, makefile := make(map[string][]*source), ""
	for _, s := range project(t) {
		if room := path.Dir(s.path); s.isTest() {
			rooms[room] = append(rooms[room], s)
		} else if s.path == "Makefile" {
			makefile = s.text
		}
	}
	for room, files := range rooms {
		if isSystem(makefile, room) || room == "fuzz/planted" || room == "fuzz/sim" { // they judge by binaries of tests
			continue
		}
		for test, call := range strays(files) {
			t.Errorf("%s: %s reaches %s: tests that do have names that begin with TestSystem", room, test, call)
		}
	}
}

func TestAStrayIsFoundThroughWhatItCalls(t *testing.T) {
	const text = "package x\nimport process \"os/exec\"\n" +
		"func TestA(t *T) { b(t) }\nfunc b(t *T) { x := y{}; x.c() }\nfunc (y) c() { process.Command() }\n" +
		"func TestSystemD(t *T) { b(t) }\nfunc TestE(t *T) { run.Command() }\n"
	got := strays([]*source{parse(t, "x/x_test.go", text)})
	if want := map[string]string{"TestA": "exec.Command"}; !maps.Equal(got, want) {
		t.Errorf("strays %v, want %v", got, want)
	}
	if m := "SYSTEM := ./a/... ./b\n"; !isSystem(m, "a/c") || !isSystem(m, "b") || isSystem(m, "b/c") || isSystem(m, "ab") {
		t.Error("the rooms of the second ring are not those of the Makefile")
	}
}
