package storage

import (
	"errors"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Errors when opening a folder.
var (
	// ErrInUse means that another process holds the folder's lock.
	ErrInUse = errors.New("the data folder is in use")
	// ErrFormat means that the folder has a format that this program does not read.
	ErrFormat = errors.New("the data folder has another format")
	// ErrNotFolder means that the folder exists but holds something else.
	ErrNotFolder = errors.New("not a holdfast data folder")
	// ErrNode means that the folder is that of a node of a cell, whose log decides what is in it.
	ErrNode = errors.New("the data folder is that of a node of a cell")
	// ErrNotEmpty means that a folder to be made holds something.
	ErrNotEmpty = errors.New("the folder is not empty")
	// ErrDamaged means that a file of the folder cannot be read as what it should be. A copy helps,
	// or a tolerant View, which reads what can still be read. Options.AcceptLoss does not open it,
	// unless the error is an ErrLoss, too.
	ErrDamaged = content.ErrDamaged
	// ErrList is an ErrDamaged of the list of tables. Only a copy helps: no View opens the folder.
	ErrList = tables.ErrList
	// ErrLoss means that batches are missing that were acknowledged: the anchor, the journal, a
	// missing table or the control record tell. Options.AcceptLoss opens the folder without them.
	ErrLoss = content.ErrLoss
	// ErrTooManyFiles means that the process, or the system, may not have as many files open as the
	// folder needs.
	ErrTooManyFiles = errors.New("the limit of open files is reached")
	// ErrRefused means that the system refuses the process the right to read or write a file of the
	// folder, or memory for it.
	ErrRefused = errors.New("the system refuses access to the data folder")
	// ErrTemporary means that the temporary folder of a View cannot be used.
	ErrTemporary = errors.New("temporary files cannot be written")
)

// Errors of Apply and Keep.
var (
	// ErrFull means that the disk has too little room left to write safely: nothing was written.
	ErrFull = errors.New("the disk is full")
	// ErrUnknown means that the batch may or may not be on disk. The store accepts nothing more;
	// the caller stops, and the next Open tells.
	ErrUnknown = errors.New("the outcome of the batch is not known")
)

// ErrClosed means that the store was closed.
var ErrClosed = errors.New("the store is closed")
