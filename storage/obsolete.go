package storage

import (
	"fmt"
	"os"
)

// Badger removes a log when the tables hold all of it and nobody reads its memory table any more: a
// reader, such as a backup, keeps it, also while newer logs come and go. What is killed then leaves
// a log that is older than tables, with a gap behind it. It must not be read again: a packet in it
// may have been deleted since, and the tombstone, once it reached the last level, is gone, so the
// packet would come back.
//
// Memory tables are written out one by one, the oldest first, and a transaction is in one log
// whole. So the tables hold every transaction up to their newest, and a log that has no later one
// is obsolete.

// removeObsolete removes the logs of a database folder that the tables, which were checked before,
// hold all of. They are removed again if a power cut brings them back.
func removeObsolete(path string, secret []byte) error {
	names, err := logNames(path)
	if err != nil || len(names) == 0 {
		return err
	}
	m, _, err := readManifest(path)
	if err != nil {
		return err
	}
	newest, all := newestListed(path, m)
	if !all {
		return nil
	}
	for _, name := range names {
		obsolete, err := obsoleteLog(name, newest, secret)
		if err != nil {
			return fmt.Errorf("%w: cannot read the log %s: %w", ErrDamaged, name, err)
		}
		if !obsolete {
			continue
		}
		if err := os.Remove(name); err != nil {
			return fmt.Errorf("cannot remove a log of what is in tables: %w", err)
		}
	}
	return nil
}

// obsoleteLog tells whether a log holds transactions, and none after newest. Each has a control
// record, by which it is known also where another record of it is damaged.
func obsoleteLog(name string, newest uint64, secret []byte) (obsolete bool, err error) {
	b, err := readLogFile(name)
	return err == nil && isObsolete(b, newest, secret), err
}

func isObsolete(b []byte, newest uint64, secret []byte) bool {
	end := readLog(b, anyVersion)
	if end.last == anyVersion || end.last > newest {
		return false
	}
	return !findControl(b[end.at:], secret, func(r *logRecord) bool { return r.version > newest })
}

// splitObsolete is removeObsolete of a view, which removes nothing: it parts the logs that are to
// be read from the obsolete ones. What cannot be read is checked when it is its turn.
func (l *viewBuilder) splitObsolete(names []string) (fresh, obsolete []string, err error) {
	m, _, err := readManifest(l.db)
	if err != nil {
		return names, nil, nil
	}
	newest, all := newestListed(l.db, m)
	if !all {
		return names, nil, nil
	}
	for _, name := range names {
		is, err := obsoleteLog(name, newest, l.secret)
		if refusedBySystem(err) {
			return nil, nil, err
		}
		if err == nil && is {
			obsolete = append(obsolete, name)
		} else {
			fresh = append(fresh, name)
		}
	}
	return fresh, obsolete, nil
}

// obsolete makes tables of the obsolete logs where a table is damaged, which may have had the same.
// Otherwise nothing of them is read.
func (l *viewBuilder) obsolete(names []string) error {
	damaged := l.findings != nil && l.findings.of(FindingTable)
	for _, name := range names {
		if damaged {
			l.findings.add(Finding{FindingLog, l.key(name), "tables had taken over what it holds, and one of them is damaged; " +
				"it is read, too, so packets that were popped may be there again"})
			if _, err := l.log(name, anyVersion); err != nil {
				return err
			}
		}
		l.progress(name)
	}
	return nil
}
