package holdfast_test

import (
	"os"
	"testing"

	"golang.org/x/tools/go/packages"
)

// All sources have the types that another system asks for. To build the program for it would take
// minutes where nothing is cached.
func TestTheProgramIsRightForAnotherSystem(t *testing.T) {
	const all = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes
	list, err := packages.Load(&packages.Config{Mode: all, Env: append(os.Environ(), "GOOS=darwin", "CGO_ENABLED=0")}, "./cmd/holdfast")
	if err != nil {
		t.Fatal(err)
	}
	packages.Visit(list, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			t.Error(err)
		}
	})
}
