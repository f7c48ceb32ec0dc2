package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/table"
)

// A crash in a compaction leaves tables that the list does not name, and Badger removes them. But a
// list that lost its end, or is gone, does not name tables that hold what is nowhere else: no log
// has it, and no listed table is as new.

// checkUnlisted returns an error when the list of tables m cannot be the whole one; gone says that
// there is no list. names are the logs that are not obsolete.
func checkUnlisted(path string, names []string, m manifest, gone bool, unlisted []uint64) error {
	if len(unlisted) == 0 {
		return nil
	}
	if gone {
		return fmt.Errorf("it is missing, although %d tables lie there", len(unlisted))
	}
	logs, err := firstLogged(names)
	if err != nil {
		return err
	}
	newest, _ := newestListed(path, m)
	for _, number := range unlisted {
		// One that cannot be read was being written.
		version, ok := newestVersion(table.NewFilename(number, path))
		if ok && version > newest && (logs == 0 || version < logs) {
			return fmt.Errorf("it does not name table %s, which is newer than all that it names", table.IDToFilename(number))
		}
	}
	return nil
}

// newestListed returns the version of the newest transaction in the tables of a list, and whether
// all of them could be read.
func newestListed(path string, m manifest) (newest uint64, all bool) {
	all = true
	for number := range m {
		version, ok := newestVersion(table.NewFilename(number, path))
		newest, all = max(newest, version), all && ok
	}
	return newest, all
}

// beforeLogs returns the version of the transaction that precedes the logs, which are not obsolete,
// or anyVersion where the tables do not tell. The tables hold every transaction up to their newest,
// because every transaction has a control record and no compaction drops the newest one. The logs
// hold what follows.
func beforeLogs(path string, logs []string) (uint64, error) {
	m, gone, err := readManifest(path)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return 0, err
	}
	newest, all := newestListed(path, m)
	if unlisted, uerr := unlistedTables(path, m); uerr != nil || err != nil || !all || gone && len(unlisted) > 0 {
		return anyVersion, uerr // the list is checked by checkTables and checkList
	}
	first, err := firstLogged(logs)
	if err != nil {
		return 0, err
	}
	if first > 0 && first <= newest {
		return first - 1, nil
	}
	return newest, nil
}

// newestVersion returns the version of the newest transaction in a table.
func newestVersion(name string) (version uint64, ok bool) {
	var err error
	defer func() { ok = ok && err == nil }()
	defer recoverFault(&err)()
	t, err := openTableFile(name)
	if err != nil {
		return 0, false
	}
	defer t.close()
	return t.root.MaxVersion(), true
}

// firstLogged returns the version of the oldest transaction in the logs, 0 when there is none.
func firstLogged(names []string) (uint64, error) {
	for _, name := range names {
		version, err := firstVersion(name)
		if err != nil {
			return 0, fmt.Errorf("%w: cannot read the log %s: %w", ErrDamaged, name, err)
		}
		if version != 0 {
			return version, nil
		}
	}
	return 0, nil
}

func firstVersion(name string) (version uint64, err error) {
	b, err := readSmall(name, 2*maxRecord)
	if len(b) > logHeader {
		r, _ := parseLogRecord(b[logHeader:])
		version = r.version
	}
	return version, err
}

// unlistedTables returns the tables that lie in a database folder but are not in the list.
func unlistedTables(path string, m manifest) ([]uint64, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the database folder: %w", err)
	}
	var numbers []uint64
	for _, entry := range entries {
		number, ok := tableNumber(entry.Name())
		if _, listed := m[number]; ok && !listed {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// checkList refuses a database folder whose list of tables cannot be the whole one, because Badger
// would remove the tables that it does not name. With accept it refuses only a list that is gone:
// where batches are not synced one by one, a power cut may keep a new table and lose its log.
func checkList(path string, accept acceptance) error {
	m, gone, err := readManifest(path)
	if err != nil {
		return err
	}
	unlisted, err := unlistedTables(path, m)
	if err != nil {
		return err
	}
	names, err := logNames(path)
	if err != nil {
		return err
	}
	err = checkUnlisted(path, names, m, gone, unlisted)
	switch {
	case err == nil:
		return nil
	case accept != nil && !gone:
		return accept.loss(FindingManifest, path, "the list of tables: %w; what that table holds is given up", err)
	case errors.Is(err, ErrDamaged):
		return err
	}
	return fmt.Errorf("%w: the list of tables %s: %w",
		ErrDamaged, filepath.Join(path, manifestName), err)
}
