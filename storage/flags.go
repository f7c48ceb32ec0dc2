package storage

// Flags of a packet that an index keeps for whoever changes its record.
const (
	FlagExpires = 1 << iota // the packet has an expiry; the control record does not count it
	FlagLarge               // its payload has a record of its own
	FlagMore                // its record has what the index does not hold, besides a payload
)

// Flags packs the three.
func Flags(expires, large, more bool) uint8 {
	var f uint8
	if expires {
		f |= FlagExpires
	}
	if large {
		f |= FlagLarge
	}
	if more {
		f |= FlagMore
	}
	return f
}
