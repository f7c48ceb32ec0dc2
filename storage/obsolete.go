package storage

import (
	"fmt"
	"os"
)

// Badger removes a log when the tables hold all of it and no reader uses its memory table any more.
// A long reader, such as a backup, keeps a log while newer ones come and go. A kill then leaves a
// log that is older than the tables. It must not be read again: a packet in it may have been
// deleted since, and a tombstone is gone once it reached the last level, so the packet would come
// back.
//
// Badger writes memory tables out one by one, the oldest first, and each transaction lies in one
// log. So the tables hold every transaction up to their newest, and a log without a later one is
// obsolete.

// removeObsolete removes the obsolete logs of a database folder whose tables were checked. A power
// cut may bring them back; the next start then removes them again.
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

// obsoleteLog reports whether a log holds transactions, and none after newest. A damaged
// transaction is known by its control record.
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

// splitObsolete separates the logs that a view reads from the obsolete ones. A log that cannot be
// read counts as one to read, and is reported then.
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

// obsolete reads the obsolete logs only where a table is damaged: they may hold what it held.
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
