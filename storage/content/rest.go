package content

// Rest is fields of a record that a later version wrote, as msgpack (number, value, number, value,
// …). Who writes the record anew gives them back, or what they say is lost.
type Rest struct {
	Bytes  string
	Fields int // how many these are
}

// rest appends fields as they were.
func (w *writer) rest(r Rest) {
	w.fields += r.Fields
	w.b = append(w.b, r.Bytes...)
}

// keep adds the field at hand, which this version does not know.
func (r *reader) keep(rest *Rest) {
	r.skip(0)
	rest.Bytes += string(r.b[r.at:r.pos])
	rest.Fields++
}
