package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

// Term decides a batch, the one behind the last, and returns when a majority of machines has it on
// the device. After an error it decides no more, and the batch may be decided or not. The content
// is read until then.
type Term func(batch uint64, content [][]byte) error

// errFollows: a batch of a store's own, which follows others.
var errFollows = errors.New("the store follows another machine's batches")

// The content of a batch as other machines get it:
//
//	length of the control record u16 | entries u32 | control record | entries
const contentHead = 6

// appendContentHead appends what stands before the entries.
func appendContentHead(dst []byte, c *journal.Content) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Control)))
	dst = binary.BigEndian.AppendUint32(dst, c.Entries)
	return append(dst, c.Control...)
}

// readContent reads it. What it returns points into b.
func readContent(batch uint64, b []byte) (c journal.Content, control content.Control, err error) {
	if len(b) < contentHead || len(b)-contentHead < int(binary.BigEndian.Uint16(b)) {
		return c, control, fmt.Errorf("%w: batch %d of the log is cut short", ErrDamaged, batch)
	}
	c = journal.Content{Batch: batch, Entries: binary.BigEndian.Uint32(b[2:])}
	length := int(binary.BigEndian.Uint16(b))
	c.Control, c.Body = b[contentHead:][:length:length], [][]byte{b[contentHead+length:]}
	if err = content.DecodeControl(c.Control, &control); err == nil && control.Batch != batch {
		err = fmt.Errorf("%w: batch %d of the log says that it is batch %d", ErrDamaged, batch, control.Batch)
	}
	return c, control, err
}
