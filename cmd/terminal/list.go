package terminal

import "cmp"

// List is things of one kind on standard output: a row of a table for each, or a JSON object.
type List struct {
	table *Table
	out   *Output
	json  bool
}

// List begins a list with the heads of its columns. The texts are those of them that may be cut. A
// signal ends it: it is for what can be asked for again.
func (p *Process) List(json bool, heads []string, texts ...string) *List {
	out := p.Long()
	l := &List{NewTable(out, texts...), out, json}
	if !json {
		l.table.Row(heads...)
	}
	return l
}

// Add adds a thing in both forms, of which one is printed.
func (l *List) Add(object *JSON, cells ...string) {
	if !l.json {
		l.table.Row(cells...)
		return
	}
	_ = object.Print(l.out) // Flush says what is wrong
}

// Flush prints what was added. The rows are aligned with each other.
func (l *List) Flush() error { return cmp.Or(l.table.Flush(), l.out.Flush()) }
