package storage

// AppendChanged appends the full record rec with another expiry and identity to dst: what a packet
// has that is kept for a while, or that moves. A zero identity stands for the sequence. The error
// wraps ErrRecord.
func AppendChanged(dst, rec []byte, expiry int64, identity uint64) ([]byte, error) {
	n := 0
	if expiry != 0 {
		n++
	}
	if identity != 0 {
		n++
	}
	err := eachRaw(rec, func(field uint64, _ []byte) {
		if field != fieldExpiry && field != fieldIdentity {
			n++
		}
	})
	if err != nil {
		return dst, err
	}
	dst = appendMapHeader(dst, n)
	putExpiry := func() {
		if expiry != 0 {
			dst = appendInt(append(dst, fieldExpiry), expiry)
			expiry = 0
		}
	}
	putIdentity := func() {
		if identity != 0 {
			dst = appendUint(append(dst, fieldIdentity), identity)
			identity = 0
		}
	}
	_ = eachRaw(rec, func(field uint64, raw []byte) {
		if field > fieldExpiry {
			putExpiry()
		}
		switch {
		case field == fieldExpiry || field == fieldIdentity:
			return
		case field == fieldSize || field == fieldPayload || field > fieldIdentity:
			putIdentity()
		}
		dst = append(dst, raw...)
	})
	putExpiry()
	putIdentity()
	return dst, nil
}

// eachRaw calls fn for each field of a record with its number and value as they are stored.
func eachRaw(rec []byte, fn func(field uint64, raw []byte)) error {
	r := reader{b: rec}
	return r.eachField(func(field uint64, at int) bool {
		if !r.skip(0) {
			return false
		}
		fn(field, rec[at:r.pos])
		return true
	})
}
