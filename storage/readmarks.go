package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dgraph-io/badger/v4"
)

// What vouches for a database that is looked at: the small files beside it, before it is opened,
// and its control record after that.

// readMarks reads the small files beside the database.
func (l *viewBuilder) readMarks() (err error) {
	const limit = 64
	b, err := readSmall(l.folder.name(formatName), limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, serr := os.Stat(l.db); serr != nil || l.findings == nil {
			return fmt.Errorf("%w: %s has no file %q", ErrNotFolder, l.folder.path, formatName)
		}
		err = l.report(FindingFormat, formatName, "the file is missing: what is there is read as version %d", FormatVersion)
	case err != nil:
		err = l.reportUnread(FindingFormat, formatName, fmt.Errorf("cannot read the format of the data folder: %w", err))
	default:
		err = l.reportDamage(FindingFormat, formatName, l.folder.parseFormat(b))
	}
	if err != nil {
		return err
	}
	if l.mark, err = readAnchor(l.folder); err != nil {
		if err = l.reportDamage(FindingAnchor, anchorName, err); err != nil {
			return err
		}
	}
	l.unmarked = l.mark == anchorMark{}
	if l.secret, err = readSecret(l.folder); err != nil {
		return l.reportUnread(FindingSecret, secretName, err)
	}
	return nil
}

// snapshot is what the scratch copy holds, held against the anchor.
func (l *viewBuilder) snapshot(db *badger.DB) (_ *Snapshot, err error) {
	n := &Snapshot{txn: db.NewTransaction(false)}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if l.findings != nil {
		n.tolerate = l.findings.add
	}
	if n.control, err = controlOf(n.txn); err != nil {
		if err = l.reportDamage(FindingControl, "control record", err); err != nil {
			return nil, err
		}
	}
	if err := l.checkControl(n); err != nil {
		return nil, err
	}
	var errs [3]error
	n.load, errs[0] = loadOf(n.txn)
	n.flush, errs[1] = flushOf(n.txn)
	n.hidden, errs[2] = redoOf(n.txn)
	for i, name := range []string{"load record", "flush record", "redo record"} {
		if err = l.reportDamage(FindingRecord, name, errs[i]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// checkControl holds the control record against the anchor, and against what else must be there.
func (l *viewBuilder) checkControl(n *Snapshot) error {
	c, was := n.control, l.mark
	switch {
	case c.Batch < was.batch && l.findings == nil:
		return fmt.Errorf("%w: the store ends at batch %d, but batch %d was on disk", ErrLoss, c.Batch, was.batch)
	case l.findings == nil:
		return nil
	case c.Batch < was.batch:
		l.findings.add(Finding{FindingAnchor, anchorName, fmt.Sprintf(
			"the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost, or at least the control record of them",
			c.Batch, was.batch, c.Batch+1, was.batch)})
	case l.unmarked && c.Batch > 0:
		l.findings.add(Finding{FindingAnchor, anchorName, "it is missing, so nothing tells whether the last batches are there"})
	}
	// A control record that cannot be read was reported before.
	_ = readKey(n.txn, controlKey, func(rec []byte) error {
		if len(rec) > secretLen && bears(rec, rec[len(rec)-secretLen:]) && !bears(rec, l.secret) {
			l.findings.add(Finding{FindingSecret, secretName, "it does not hold what the control record has, " +
				"so a torn log cannot be told from a damaged one"})
		}
		return nil
	})
	return nil
}
