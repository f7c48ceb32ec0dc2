package content

// Flags of a packet that an index keeps for whoever changes its record.
const (
	FlagExpires = 1 << iota // the packet has an expiry; the control record does not count it
	FlagLarge               // its payload has a record of its own
)

// Flags packs the two.
func Flags(expires, large bool) uint8 {
	var f uint8
	if expires {
		f |= FlagExpires
	}
	if large {
		f |= FlagLarge
	}
	return f
}
