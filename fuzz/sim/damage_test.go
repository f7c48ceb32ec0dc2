package sim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-queue/holdfast/fuzz/model"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// calm has a server serve, and do what is due. Then no call fails, and no client sends anything.
func (w *world) calm() {
	for w.over() {
		w.restart()
	}
	w.endAt, w.failAt = 0, 0
	for _, c := range w.all() {
		if c != w.looker && !c.hungUp {
			c.hungUp = true
			c.wire.HangUp()
		}
	}
	for range 20 {
		w.turn()
	}
}

// unread has reads fail in turns, while the server lists all. The next start has all again.
func (w *world) unread() {
	w.calm()
	w.f.unread++
	w.failing, w.hurt = 1+w.r.IntN(3), true
	w.note("one read of %d fails", w.failing)
	w.loose = w.thereOrDamaged
	w.look()
	w.failing, w.loose = 0, nil
	w.restart()
	w.calm()
	w.look()
}

// thereOrDamaged judges a list: all that the model has is there, as it has it, or it is damaged.
func (w *world) thereOrDamaged(words []string, got, want any) {
	if _, failed := got.(model.Err); words[0] == "GET" && !failed && got != want {
		w.Fatalf("%q: it replies %.100q, want %.100q", words, got, want)
	}
	if words[0] != "QLIST" {
		return
	}
	shown := map[any]any{}
	for _, p := range packets(got) {
		shown[model.Pairs(p)["id"]] = p
	}
	for _, p := range packets(want) {
		p := p.(model.Map)
		id := p["id"]
		has := model.Pairs(shown[id])
		for note, with := range map[string]string{"reason": "last-error-class", "progress": "progress-text"} {
			if has[note] == nil { // it cannot be read
				delete(p, note)
				delete(p, with)
			}
		}
		if has["state"] == "damaged" && (has["payload"] == "" || has["payload"] == p["payload"]) { // it can be read again
			w.f.damaged++
		} else if err := model.Same(shown[id], p); err != nil {
			w.Fatalf("%q: %v\nThe model has\n%s", words, err, w.model.Dump())
		}
		delete(shown, id)
	}
	if len(shown) > 0 {
		w.Fatalf("%q: it shows %v, which is not there\nThe model has\n%s", words, shown, w.model.Dump())
	}
}

// packets are those of a reply to QLIST.
func packets(reply any) []any {
	list, _ := reply.([]any)
	if len(list) != 2 {
		return nil
	}
	return list[1].([]any)
}

// pushedOrDamaged judges a list where a loss was told: somebody has pushed what it shows.
func (w *world) pushedOrDamaged(words []string, got, _ any) {
	if text, readable := got.(string); words[0] == "GET" && readable && !w.drawn[text] {
		w.Fatalf("%q replies %.100q, which nobody has set", words, got)
	}
	if words[0] != "QLIST" {
		return
	}
	for _, p := range packets(got) {
		f := model.Pairs(p)
		if payload := f["payload"].(string); payload == "" && f["state"] != "damaged" && !w.drawn[""] || payload != "" && !w.drawn[payload] {
			w.Fatalf("%q shows %v, which nobody has pushed", words, f)
		}
	}
}

// rot changes a bit of a file behind the end of a process. The next start refuses that and says why
// it does, and may go on where a loss is accepted. Or it shows all, and what of it cannot be read.
func (w *world) rot() {
	w.calm()
	w.f.rotten++
	w.kill = true
	w.end("a restart, with another bit")
	w.giveUp()
	w.disk.Unmount()
	name := w.garble()
	w.mount(w.r)
	w.fate = fate{hurt: true}
	w.options.AcceptLoss = false
	state, err := w.open()
	if err != nil {
		w.refused(name, err)
		w.options.AcceptLoss = true
		state, err = w.open()
	}
	if err != nil {
		w.refused(name, err)
		return
	}
	batch := w.s.Control().Batch
	was := w.come[batch]
	// The newest record has none behind it, and the anchor may be older than it.
	switch told := w.options.AcceptLoss || len(state.Report.Findings) > 0; {
	case was != nil && !told:
		w.model, w.loose = was.Clone(), w.thereOrDamaged
		w.model.Restart(state.Now, int64(state.Marks.NextSeq-content.FirstSeq), min(-1, int64(state.Marks.LowSeq-content.FirstSeq)), true)
	case !told && name != "anchor" && (!strings.HasPrefix(name, "journal") || batch+1 < w.acked && w.options.Sync == storage.SyncAlways()):
		w.Fatalf("with another bit of %s it starts at batch %d, of %d, and says nothing", name, batch, w.acked)
	default:
		w.loose = w.pushedOrDamaged
	}
	w.note("with another bit of %s it starts at batch %d, of %d, and finds %q", name, batch, w.acked, state.Report.Findings)
	w.serve(store{w.coated, w}, state)
	w.look()
}

// refused judges why a server does not start.
func (w *world) refused(name string, err error) {
	w.note("with another bit of %s: %v", name, err)
	w.f.refused++
	if !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrLoss) && !errors.Is(err, storage.ErrFormat) && !errors.Is(err, storage.ErrNotFolder) {
		w.Fatalf("with another bit of %s it does not start: %v", name, err)
	}
	w.giveUp()
}

// open starts a server, whatever it has.
func (w *world) open() (*recovery.State, error) {
	s, err := storage.Open(w.at("data"), w.options)
	if err != nil {
		return nil, err
	}
	w.s, w.coated = s, w.coat(s)
	o := recovery.Options{Now: w.wall(), AcceptLoss: w.options.AcceptLoss, Accepted: s.Accepted()}
	return recovery.Restore(store{w.coated, w}, o)
}

// garble changes a bit of a file, and says of which.
func (w *world) garble() (name string) {
	var names []string
	w.must("a walk", filepath.WalkDir(w.at("data"), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, _ := e.Info(); info.Size() > 0 {
				names = append(names, path)
			}
		}
		return err
	}))
	path := pick(w, names...)
	b, err := os.ReadFile(path)
	w.must("a file", err)
	at := w.r.IntN(len(b))
	for tries := 0; b[at] == 0 && tries < 20; tries++ { // most of the journal is zeros
		at = w.r.IntN(len(b))
	}
	b[at] ^= 1 << w.r.IntN(8)
	w.must("a file", os.WriteFile(path, b, 0o600))
	return strings.TrimPrefix(path, w.at("data")+"/")
}
