package keyspace

// Field is a field of a hash. The caller sets ID and Value as it likes.
type Field struct {
	Value
	ID   uint64
	name string
	slot uint32
}

// Name returns the name.
func (f *Field) Name() string { return f.name }

// fields holds the fields of one hash.
type fields struct {
	slots  slots[Field]
	live   int
	byName map[string]*Field // nil while there are few: then a search goes over the slots
}

// fewFields is how many fields a hash has before it finds them by a map.
const fewFields = 16

// Field returns the field of a hash with a name, nil if there is none.
func (e *Entry) Field(name []byte) *Field {
	if e.fields.byName != nil {
		return e.fields.byName[string(name)]
	}
	for _, f := range e.fields.slots.all {
		if f != nil && f.name == string(name) {
			return f
		}
	}
	return nil
}

// AddField adds a field to a hash, which has none with that name. The name is copied.
func (e *Entry) AddField(name []byte, id uint64) *Field {
	s := e.fields
	f := &Field{ID: id, name: string(name)}
	f.slot = s.slots.add(f)
	s.live++
	switch {
	case s.byName != nil:
		s.byName[f.name] = f
	case s.live > fewFields:
		s.byName = make(map[string]*Field, 2*s.live)
		for _, f := range s.slots.all {
			if f != nil {
				s.byName[f.name] = f
			}
		}
	}
	return f
}

// RemoveField takes a field out of its hash.
func (e *Entry) RemoveField(f *Field) {
	s := e.fields
	s.slots.remove(f.slot)
	if s.live--; s.live == 0 {
		*s = fields{}
	}
	if s.byName != nil {
		delete(s.byName, f.name)
	}
}

// Fields returns how many fields a hash has.
func (e *Entry) Fields() int { return e.fields.live }

// LastField returns some field of a hash, nil if it has none.
func (e *Entry) LastField() *Field {
	return e.fields.slots.last()
}

// ScanFields is [Directory.Scan] for the fields of a hash.
func (e *Entry) ScanFields(cursor uint64, n int, fn func(*Field)) (next uint64) {
	return e.fields.slots.scan(cursor, n, fn)
}
