package ask

// Barbershop works on the board of a running server: its items and their scores.
type Barbershop struct {
	Import importCmd `cmd:"" help:"Send a snapshot to a running server."`
	Export exportCmd `cmd:"" help:"Write the items of a running server as a snapshot."`
}

func (c *Barbershop) Help() string {
	return `A snapshot is a text file with a line for each item: its number, a space, and its score. Both are whole numbers from 0 to 4294967295.

Examples:

    holdfast barbershop import barbershop.snapshot
    holdfast barbershop export barbershop.snapshot`
}
