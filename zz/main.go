package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

var content = map[string]bool{}

func main() {
	for _, f := range os.Args[1:] {
		content[f] = true
	}
	cfg := &packages.Config{Mode: packages.LoadAllSyntax, Tests: true, Dir: "/tmp/house"}
	pkgs, err := packages.Load(cfg, "./storage")
	if err != nil {
		panic(err)
	}
	for _, p := range pkgs {
		if p.Name != "storage" || !strings.Contains(p.ID, "[") {
			continue
		}
		file := func(o types.Object) string { return filepath.Base(p.Fset.Position(o.Pos()).Filename) }
		for _, f := range p.Syntax {
			from := filepath.Base(p.Fset.Position(f.Pos()).Filename)
			if !strings.HasSuffix(from, "_test.go") {
				continue
			}
			for _, d := range f.Decls {
				fd, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				cu, eng, tst := map[string]bool{}, map[string]bool{}, map[string]bool{}
				ast.Inspect(fd, func(n ast.Node) bool {
					id, ok := n.(*ast.Ident)
					if !ok {
						return true
					}
					o := p.TypesInfo.Uses[id]
					if o == nil || o.Pkg() != p.Types {
						return true
					}
					isField := false
					if v, ok := o.(*types.Var); ok && v.IsField() {
						isField = true
					}
					isMethod := false
					if fn, ok := o.(*types.Func); ok && fn.Type().(*types.Signature).Recv() != nil {
						isMethod = true
					}
					if o.Parent() != p.Types.Scope() && !isField && !isMethod {
						return true
					}
					to := file(o)
					switch {
					case strings.HasSuffix(to, "_test.go"):
						if to != from && !isField {
							tst[o.Name()+"@"+to] = true
						}
					case content[to]:
						if !o.Exported() {
							cu[o.Name()] = true
						}
					default:
						eng[o.Name()] = true
					}
					return true
				})
				j := func(m map[string]bool) string {
					var l []string
					for k := range m {
						l = append(l, k)
					}
					sort.Strings(l)
					return strings.Join(l, " ")
				}
				kind := "E"
				if len(eng) == 0 {
					kind = "C"
				}
				if len(eng) > 0 && len(cu) > 0 {
					kind = "MIX"
				}
				fmt.Printf("%s %s.%s | cu: %s | eng: %s | tst: %s\n", kind, from, fd.Name.Name, j(cu), j(eng), j(tst))
			}
		}
	}
}
