package planted

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// source is a file with bugs. Each function with a bug stands there twice: as it is, and as a twin
// with the bug, under another name. The original calls the twin first of all if the bug is on.
type source struct {
	text  string
	pack  string
	calls map[int]string // what comes in at a place of the text
	twins strings.Builder
}

// plant makes the twin for a bug.
func (s *source) plant(b Bug, n int) error {
	file, err := parser.ParseFile(token.NewFileSet(), "", s.text, 0)
	if err != nil {
		return err
	}
	s.pack = file.Name.Name
	at := strings.Index(s.text, b.Old)
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || at < int(fn.Name.End())-1 || at+len(b.Old) > int(fn.End())-1 {
			continue
		}
		call, err := callOf(fn, n)
		if err != nil {
			return err
		}
		from, name, end := int(fn.Pos())-1, int(fn.Name.End())-1, int(fn.End())-1
		s.calls[int(fn.Body.Lbrace)] += fmt.Sprintf(" if planted__ == %d { %s };", n, call)
		fmt.Fprintf(&s.twins, "\n//line planted%d.go:1\n%s__%d%s%s%s\n", n, s.text[from:name], n, s.text[name:at], b.New, s.text[at+len(b.Old):end])
		return nil
	}
	return errors.New("what is to be replaced stands in no function")
}

// callOf is the statement that goes on in the twin of a function.
func callOf(fn *ast.FuncDecl, n int) (string, error) {
	names, unnamed := []string(nil), errors.New("the function has a receiver or a parameter without a name")
	for _, p := range fn.Type.Params.List {
		if len(p.Names) == 0 {
			return "", unnamed
		}
		for _, name := range p.Names {
			names = append(names, name.Name)
		}
		if _, ok := p.Type.(*ast.Ellipsis); ok {
			names[len(names)-1] += "..."
		}
	}
	call := fmt.Sprintf("%s__%d(%s)", fn.Name.Name, n, strings.Join(names, ", "))
	if fn.Recv != nil {
		if len(fn.Recv.List[0].Names) == 0 {
			return "", unnamed
		}
		names = append(names, fn.Recv.List[0].Names[0].Name)
		call = names[len(names)-1] + "." + call
	}
	if slices.Contains(names, "_") {
		return "", unnamed
	}
	if fn.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}

// build returns the file with all bugs. The lines of what was there keep their numbers.
func (s *source) build() string {
	text := s.text
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(s.calls))) {
		text = text[:at] + s.calls[at] + text[at:]
	}
	return text + s.twins.String()
}

// picks is the file of a package that says which of so many bugs is on.
func picks(pack string, bugs int) string {
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
)

var planted__ = func() int {
	is := os.Getenv("PLANTED")
	n, err := strconv.Atoi(is)
	if is != "" && (err != nil || n < 1 || n > %d) {
		os.Stderr.WriteString("PLANTED is " + is + ": no planted bug has this number\n")
		os.Exit(2)
	}
	return n
}()
`, pack, bugs)
}
