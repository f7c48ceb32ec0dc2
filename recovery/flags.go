package recovery

// Flags that the index carries for whoever removes the packet from the store.
const (
	FlagExpires = 1 << iota // the packet has an expiry; the control record does not count it
	FlagLarge               // its payload has a record of its own
)

// Flags packs what the removal of a packet from the store must know.
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
