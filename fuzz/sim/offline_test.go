package sim

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/cryptotest"
	"time"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/recovery/compact"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/recovery/load"
	"github.com/holdfast-queue/holdfast/recovery/verify"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// offline runs the commands for a folder that nobody serves, between two processes. They work on a
// copy, which the next process may start on. What they draw nobody else does.
func (w *world) offline() {
	if planted() != "" || w.tools.IntN(3) > 0 { // the seeds of mutants are without
		return
	}
	if _, err := os.Stat(w.at("data/format")); err != nil { // no process has come far enough
		return
	}
	o := offline{world: w, now: w.wall(), dir: filepath.Join(w.Root, "offline")}
	w.must("a copy", os.CopyFS(o.dir, os.DirFS(w.at("data"))))
	defer os.RemoveAll(o.dir)
	defer cryptotest.SetGlobalRandom(w.T, w.tools.Uint64()) // these commands have goroutines, which draw in any order
	o.look(o.dir)
	o.verify(o.dir)
	text, packed := o.dump(o.dir)
	w.f.verified++
	what := w.tools.IntN(5)
	if at := o.was.Outlived(); at > o.now && w.tools.IntN(2) == 0 {
		o.now, what = at, 0 // its clock is ahead
	}
	switch what {
	case 0:
		w.f.compacted++
		o.compact()
	case 1:
		w.f.loaded++
		o.load(text, text)
	case 2:
		w.f.loaded++
		o.load(packed, text)
	case 3:
		w.f.restored++
		o.restore()
	}
}

// offline is what is done between two processes.
type offline struct {
	*world
	now   int64
	dir   string
	batch uint64         // that the folder shows
	was   *model.Server  // what the model has of it
	there map[int64]bool // packets, by their numbers
}

// look reads which batch a folder shows, and the numbers of all that is in it.
func (o *offline) look(dir string) {
	view, err := storage.OpenView(dir, storage.ViewOptions{})
	o.must("a view", err)
	defer view.Close()
	o.batch, o.there = view.Control().Batch, map[int64]bool{}
	o.must("a walk", view.Walk(storage.Visitor{
		Packet: func(id content.PacketID, m *content.Meta, _ []byte, damage error) error {
			if damage == nil {
				o.there[int64(cmp.Or(m.Identity, id.Seq)-content.FirstSeq)] = true
			}
			return damage
		},
	}))
	if o.was == nil {
		was := o.come[o.batch]
		if was == nil || o.batch < o.least {
			o.Fatalf("the folder shows batch %d, want %d or a later one", o.batch, o.least)
		}
		o.was = was.Clone()
	}
}

// verify finds nothing, and counts what the model has.
func (o *offline) verify(dir string) {
	r, err := verify.Folder(o.Context(), dir, verify.Options{Now: o.now})
	o.must("verify", err)
	if !r.Sound() {
		o.Fatalf("verify finds %v in a folder that a server takes\nThe model has\n%s", r.Findings, o.was.Dump())
	}
	if want := len(grep(o.was.Loaded(o.now).Dumped(), `type="packet"`)); r.Packets != int64(want) {
		o.Fatalf("verify counts %d packets, want %d\nThe model has\n%s", r.Packets, want, o.was.Dump())
	}
}

// dump makes a dump in each format, which has what the model has.
func (o *offline) dump(dir string) (text, packed []byte) {
	view, err := storage.OpenView(dir, storage.ViewOptions{})
	o.must("a view", err)
	defer view.Close()
	var out [2]bytes.Buffer
	for i, format := range []dump.Format{dump.JSONL, dump.Msgpack} {
		_, err := dump.Dump(view, &out[i], dump.Options{Format: format, Now: o.now})
		o.must("dump", err)
	}
	want := o.was.Loaded(o.now)
	got := o.lines(out[0].Bytes(), want)
	for i, line := range want.Dumped() {
		if i == len(got) || got[i] != line {
			o.Fatalf("batch %d at %d: of a dump line %d is\n%.500s\nwant\n%.500s\nThe model has\n%s", o.batch, o.now, i, append(got, "")[i], line, o.was.Dump())
		}
	}
	if more := got[len(want.Dumped()):]; len(more) > 0 {
		o.Fatalf("batch %d at %d: a dump has more: %.1000q\nThe model has\n%s", o.batch, o.now, more, o.was.Dump())
	}
	return out[0].Bytes(), out[1].Bytes()
}

// lines are the records of a dump, without what the model does not know.
func (o *offline) lines(b []byte, want *model.Server) (lines []string) {
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber()
	queue, hash := "", ""
	for in.More() {
		f := model.Map{}
		o.must("a record", in.Decode(&f))
		for name, v := range f {
			f[name] = plain(v)
		}
		db := fmt.Sprint(cmp.Or(f["database"], any("0")))
		delete(f, "database")
		switch f["type"] {
		case "holdfast", "end":
			continue
		case "queue":
			queue = db + f["queue"].(string)
			if f["queue"] = queue; f["settings"] == nil && !want.Has(queue) {
				continue
			}
			if settings, has := f["settings"].(model.Map); has {
				f["settings"] = model.Line(settings)
			}
			delete(f, "id")
			delete(f, "counters")
		case "share":
			if f["queue"] = queue; o.over(f["until"]) || !want.HasShares(queue) { // which Work deletes later
				delete(f, "until")
				delete(f, "consumer")
			}
			if len(f) == 3 {
				continue
			}
		case "window":
			f["queue"] = queue
		case "packet":
			f["queue"] = queue
			o.packet(f, want)
		case "string":
			f["name"] = db + f["name"].(string)
		case "hash":
			hash = db + f["name"].(string)
			f["name"] = hash
		case "field":
			f["hash"] = hash
		}
		lines = append(lines, model.Line(f))
	}
	slices.Sort(lines)
	return lines
}

// over says that a moment of a record is past.
func (o *offline) over(moment any) bool {
	var at int64
	_, _ = fmt.Sscan(fmt.Sprint(moment), &at)
	return at <= o.now
}

// packet leaves out of the record of a packet what the model does not know.
func (o *offline) packet(f model.Map, want *model.Server) {
	if f["identity"] = cmp.Or(f["identity"], f["sequence"]); f["key"] != nil {
		f["key"] = "=" + f["key"].(string)
	}
	f["priority"] = fmt.Sprint("p", f["priority"])
	if f["progress"] != nil {
		f["progress"] = fmt.Sprint(f["progress"], "%")
	}
	if state := f["state"]; state != "claimed" {
		if delete(f, "token"); state != "dead" {
			delete(f, "until")
		}
	}
	for _, name := range []string{"id", "not_before", "origin_id"} {
		delete(f, name)
	}
}

// plain is a value of JSON as the model has it.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case map[string]any:
		if text, is := v["base64"].(string); is && len(v) == 1 {
			b, _ := base64.StdEncoding.DecodeString(text)
			return string(b)
		}
		m := model.Map{}
		for name := range v {
			m[name] = plain(v[name])
		}
		return m
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

func grep(lines []string, what string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, what) })
}

// compact compacts the folder. What is gone had expired.
func (o *offline) compact() {
	_, err := compact.Folder(o.Context(), o.dir, compact.Options{Now: o.now})
	o.must("compact", err)
	o.look(o.dir)
	o.note("compacts the folder of batch %d, at %d", o.batch, o.now)
	if gone := o.was.Compacted(o.now, o.there); gone != "" {
		o.Fatalf("compact has lost %s\nThe model has\n%s", gone, o.was.Dump())
	}
	o.verify(o.dir)
	o.adopt(o.dir)
}

// load loads a dump into a new folder, of which a dump is the same.
func (o *offline) load(b, text []byte) {
	dir := filepath.Join(o.Root, "loaded")
	defer os.RemoveAll(dir)
	_, err := load.Load(o.Context(), dir, bytes.NewReader(b), load.Options{Now: o.now})
	o.must("load", err)
	o.note("loads a dump of batch %d, at %d", o.batch, o.now)
	o.was = o.was.Loaded(o.now)
	o.look(dir)
	o.verify(dir)
	if again, _ := o.dump(dir); !bytes.Equal(again, text) {
		o.Fatalf("of what was loaded a dump is another one:\n%.3000s\nand it was\n%.3000s", again, text)
	}
	o.adopt(dir)
}

// restore makes a backup of the files, and a folder of that.
func (o *offline) restore() {
	s, err := storage.Open(o.dir, storage.Options{})
	o.must("a start", err)
	f, err := s.Files()
	o.must("files", err)
	var b bytes.Buffer
	o.must("a backup", archive.Write(&b, f, "simulation", time.UnixMilli(o.now)))
	f.Close()
	o.must("an end", s.Close())
	dir := filepath.Join(o.Root, "restored")
	defer os.RemoveAll(dir)
	r, err := archive.NewReader(&b)
	o.must("a backup", err)
	o.must("restore", r.Restore(o.Context(), dir, nil))
	o.note("restores batch %d, at %d", r.Header.Batch, o.now)
	o.look(dir)
	if r.Header.Batch != o.batch {
		o.Fatalf("a backup says that it is of batch %d, and the folder shows %d", r.Header.Batch, o.batch)
	}
	o.verify(dir)
	o.adopt(dir)
}

// adopt has the next process start on a folder, all of which is on the device.
func (o *offline) adopt(dir string) {
	w := o.world
	w.disk.Unmount()
	logs, err := filepath.Glob(filepath.Join(dir, "journal", "*.log"))
	w.must("a journal", err)
	for _, log := range logs { // they have nothing behind an end, and any names
		w.must("a journal", os.Remove(log))
	}
	w.must("a folder", os.RemoveAll(w.at("data")))
	w.must("a folder", os.Rename(dir, w.at("data")))
	w.mount(w.tools)
	w.come = map[uint64]*model.Server{o.batch: o.was}
	w.acked, w.durable, w.least, w.suspect = o.batch, o.batch, o.batch, false
}
