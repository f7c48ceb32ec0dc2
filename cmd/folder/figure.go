package folder

import "github.com/holdfast-queue/holdfast/cmd/terminal"

// figure is a number with a name.
type figure struct {
	name string
	n    int64
}

// addFigures adds numbers to an object.
func addFigures(o *terminal.JSON, all ...figure) {
	for _, f := range all {
		o.Add(f.name, f.n)
	}
}
