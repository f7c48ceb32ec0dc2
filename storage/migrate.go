package storage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// A folder of format 1 to 5 is a database that Badger itself changed: tables, and logs of what is
// not in tables yet. A start makes it one of format 6:
//
//  1. What the logs have and the tables have not becomes one window. So do the deletes that a redo
//     record lists, and in folders before format 5 the ids of unique pushes.
//  2. All of it is read. It must give the tally of the control record, and its batch must not be
//     below the anchor's.
//  3. The window is built and moved to the tables, and MANIFEST names all of them. From here on the
//     logs hold nothing that the tables have not, and go.
//  4. The file format says 6, last of all: a migration that was cut short begins again. Until then
//     the program that wrote the folder opens it, but for one with ids of unique pushes from before
//     format 5, once step 3 has named the tables.
const (
	migratedTable = 4 << 20 // size of a new table in bytes
	migratedRoom  = 4 << 20 // bytes that must be free besides what the window takes
)

// migration makes one folder one of format 6.
type migration struct {
	set     *tables.Set
	last    uint64                  // version of the last transaction in tables and logs
	window  map[string]tables.Entry // by key
	control Control
	redo    []byte // the redo record; nil if there is none
	older   olderUniques
}

// migrate makes a folder of format 1 to 5 one of format 6, before anything in it is opened. The
// error wraps ErrDamaged if the folder is not whole, and ErrFull if there is no room: then it is as
// it was. After any error migrate may be called again.
func migrate(f *folder, o *Options) (err error) {
	from := f.format
	build := f.name(buildName)
	if err := errors.Join(os.RemoveAll(build), os.Mkdir(build, 0o700)); err != nil {
		return fmt.Errorf("cannot make a folder for new tables: %w", err)
	}
	m := &migration{window: make(map[string]tables.Entry)}
	defer func() {
		if m.set != nil {
			m.set.Close()
		}
		if err != nil {
			_ = os.RemoveAll(build)
		}
	}()
	if err := m.read(f, from); err != nil {
		return fmt.Errorf("%w: the folder cannot be brought from format %d to %d: %w; start it once with the version that wrote it",
			ErrDamaged, from, FormatVersion, err)
	}
	if err := m.room(f, o); err != nil {
		return err
	}
	if err = m.write(); err == nil {
		err = errors.Join(os.RemoveAll(f.name("secret")), os.RemoveAll(f.name("reserve")), os.MkdirAll(f.name(journalName), 0o700))
	}
	if err == nil {
		err = f.writeFormat()
	}
	if err != nil {
		return fmt.Errorf("cannot bring the folder from format %d to %d: %w", from, FormatVersion, err)
	}
	o.Logger.Info("the folder has a new format, which older versions do not read", "from", from, "to", FormatVersion)
	return nil
}

// read makes the window, and checks that nothing is missing.
func (m *migration) read(f *folder, from int) (err error) {
	if m.set, err = tables.TakeOver(f.name(dbName), f.name(buildName)); err != nil {
		return err
	}
	m.last = m.set.List().Window
	if err := m.readLogs(f.name(dbName)); err != nil {
		return err
	}
	anchor, err := readAnchor(f)
	if err != nil {
		return err
	}
	for {
		tally, err := m.scan()
		if err != nil {
			return err
		}
		if m.redo != nil { // what it lists is not counted
			if err := m.carryOut(m.redo); err != nil {
				return err
			}
			continue
		}
		if err := m.control.checkAll(tally); err != nil {
			return errors.New(err.Error()) // not an ErrLoss: who accepts a loss does so with the old version
		}
		if m.control.Batch < anchor.batch {
			return fmt.Errorf("it ends at batch %d, but batch %d was on disk", m.control.Batch, anchor.batch)
		}
		if from == 5 || !m.takeOverUniques() {
			return nil
		}
	}
}

// scan reads everything that is in the tables, as the window changes it.
func (m *migration) scan() (tally Tally, err error) {
	m.control, m.redo, m.older = Control{Marks: firstMarks()}, nil, olderUniques{known: make(map[UniqueID]bool)}
	v := m.set.View()
	defer v.Close()
	err = v.Scan(nil, func(e tables.Entry) error {
		if _, changed := m.window[string(e.Key)]; changed {
			return nil
		}
		return m.see(&tally, bytes.Clone(e.Key), bytes.Clone(e.Value))
	})
	for _, e := range m.window {
		if !e.Deleted {
			err = errors.Join(err, m.see(&tally, e.Key, e.Value))
		}
	}
	return tally, err
}

// see counts an entry, and keeps what there is one of.
func (m *migration) see(tally *Tally, key, rec []byte) (err error) {
	switch prefix := string(key[:min(2, len(key))]); prefix {
	case packetPrefix:
		var meta Meta
		var id PacketID
		if id, err = decodePacketKey(key); err == nil {
			err = readRecord(rec, &meta, new(metaRest), false)
		}
		tally.Add(id, meta.Expiry)
		m.older.packet(id, &meta)
	case headPrefix, fieldPrefix:
		var i item
		var v ValueID
		if v, err = decodeItemKey(key); err == nil {
			err = decodeItem(rec, &i)
		}
		tally.AddItem(v, i.version)
		m.older.head(v, &i)
	case statePrefix:
		var id NoteID
		if id, err = decodeStateKey(key); id.Kind == 0 {
			tally.AddDelivery(id.Identity)
		}
	case uniquePrefix:
		var id UniqueID
		id, err = decodeUniqueKey(key)
		tally.AddUnique(id)
		m.older.known[id] = true
	case queuePrefix:
		var q Queue
		var counters bool
		if q.ID, counters, err = decodeQueueKey(key); err == nil && !counters {
			err = decodeQueue(rec, &q)
			m.older.queues = append(m.older.queues, q)
		}
	}
	switch string(key) {
	case controlKey:
		err = decodeControl(rec, &m.control)
	case redoKey:
		m.redo = slices.Clone(rec)
	case loadKey:
		err = errors.New("a load into the folder was cut short")
	case flushKey:
		m.older.flush, err = decodeFlush(rec)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", describeKey(key), err)
	}
	return nil
}

// room refuses a window that the disk has no room for.
func (m *migration) room(f *folder, o *Options) error {
	need := int64(migratedRoom)
	for _, e := range m.window {
		need += int64(len(e.Key)+len(e.Value)+16) * 5 / 4
	}
	free, _, err := o.tune.stat(f.path)
	if err == nil && free < need {
		err = fmt.Errorf("%w: to bring the folder to format %d takes %d bytes, %d are free; nothing was changed", ErrFull, FormatVersion, need, free)
	}
	return err
}

// write builds the window, and puts all tables in force.
func (m *migration) write() (err error) {
	a := tables.Adoption{Window: m.last, Floor: &tables.Floor{Batch: m.control.Batch}}
	if len(m.window) > 0 {
		a.Window++
		a.Add, err = m.set.Build(0, migratedTable, func(yield func(tables.Entry, error) bool) {
			for _, key := range slices.Sorted(maps.Keys(m.window)) {
				e := m.window[key]
				if e.Version = a.Window; !yield(e, nil) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if err := m.set.Adopt(a); err != nil {
		return err
	}
	return m.set.Begin()
}

func (m *migration) put(key, rec []byte) { m.window[string(key)] = tables.Entry{Key: key, Value: rec} }
func (m *migration) delete(key []byte)   { m.window[string(key)] = tables.Entry{Key: key, Deleted: true} }
