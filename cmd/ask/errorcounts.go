package ask

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// errorCounts counts packets by the class of their last error. It implements printer.
type errorCounts struct {
	w    io.Writer
	json bool
	all  map[string]*errorCount
}

// errorCount is what the packets of a class have: how many there are, and the id of the first.
type errorCount struct {
	class, id string
	packets   int64
}

func (c *errorCounts) print(p *client.Packet) error {
	one := c.all[p.ErrorClass]
	if one == nil {
		one = &errorCount{class: p.ErrorClass, id: p.ID}
		c.all[p.ErrorClass] = one
	}
	one.packets++
	return nil
}

// end prints the classes, those with the most packets first.
func (c *errorCounts) end() error {
	t := terminal.NewTable(c.w, "LAST ERROR")
	if !c.json && len(c.all) > 0 {
		t.Row("PACKETS", "LAST ERROR", "SUCH AS")
	}
	for _, one := range slices.SortedFunc(maps.Values(c.all), func(a, b *errorCount) int {
		return cmp.Or(cmp.Compare(b.packets, a.packets), cmp.Compare(a.class, b.class))
	}) {
		if !c.json {
			t.Row(strconv.FormatInt(one.packets, 10), terminal.Optional(one.class), one.id)
			continue
		}
		var o terminal.JSON
		o.Add("packets", one.packets)
		o.Text("last_error_class", one.class)
		o.Text("id", one.id)
		if _, err := c.w.Write(o.Line()); err != nil {
			return err
		}
	}
	return t.Flush()
}
