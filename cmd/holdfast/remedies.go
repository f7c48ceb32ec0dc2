package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/recovery/load"
	"github.com/holdfast-queue/holdfast/storage"
)

// remedy is what a user can do about an error. The libraries name no flags, since they have none.
type remedy struct {
	is error
	do string
}

// remedies lists what is known, an error before those that it may wrap.
func remedies() []remedy {
	const salvage = `write what can be read with "holdfast dump --salvage" and load that into a new folder`
	return []remedy{
		{broker.ErrUnreadable, `restore a copy, or serve without such packets with "holdfast serve --accept-loss"`},
		{daemon.ErrExposed, `use a loopback address such as 127.0.0.1, or allow it with --insecure on a network you trust`},
		{load.ErrNotEmpty, `--merge adds to it`},
		{load.ErrOtherDump, `"holdfast load --abandon" keeps the part that is stored`},
		{storage.ErrInUse, `"holdfast backup" copies a running server`},
		{storage.ErrLoadUnfinished, `finish it with the same "holdfast load" again, keep the part that is stored with "holdfast load --abandon", or write that part with "holdfast dump --salvage"`},
		{storage.ErrLoss, `restore a copy, or ` + salvage + `, or give up what is missing with --accept-loss ("holdfast serve" and "holdfast compact")`},
		{storage.ErrDamaged, `restore a copy, or ` + salvage},
	}
}

// remedyOf is what to do about an error, "" where that is not known.
func remedyOf(err error) string {
	for _, r := range remedies() {
		if errors.Is(err, r.is) {
			return r.do
		}
	}
	var path *fs.PathError
	if temp := os.TempDir(); errors.As(err, &path) && isTemporary(path.Path, temp) {
		return fmt.Sprintf("temporary files go to %s: set TMPDIR to a folder that has room and may be written", temp)
	}
	return ""
}

// isTemporary tells whether a path is the folder for temporary files, or in the scratch copy that
// storage makes there to read a data folder without changing it.
func isTemporary(path, temp string) bool {
	const copyPrefix = "holdfast-view-"
	return filepath.Clean(path) == filepath.Clean(temp) || strings.Contains(path, string(filepath.Separator)+copyPrefix)
}
