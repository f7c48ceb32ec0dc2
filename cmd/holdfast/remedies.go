package main

import (
	"errors"
	"os"

	"github.com/holdfast-queue/holdfast/cmd/connection"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/recovery/archive"
	"github.com/holdfast-queue/holdfast/recovery/dump"
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
	const login = `give the user with --user, and the password with HOLDFAST_PASSWORD or --password-file, or show the certificate of a user with --tls-cert`
	const right = `log in as a user that has the right (--user), or have the server's operator give it`
	const salvage = `write what can be read with "holdfast dump --salvage" and load that into a new folder`
	return []remedy{
		{client.ErrDenied, login},
		{admin.ErrDenied, login},
		{client.ErrForbidden, right},
		{admin.ErrForbidden, right},
		{client.ErrTooLarge, connection.LongerPayloads},
		{daemon.ErrExposed, `use a loopback address such as 127.0.0.1, or give certificates (--tls-cert and --tls-key; "holdfast tls init DIR" makes them) and users (in a config file, or one with --redis-password-file), or allow it with --insecure on a network you trust`},
		{archive.ErrNot, `a dump, as "holdfast backup" makes it without --files, is for "holdfast load"`},
		{dump.ErrFiles, `"holdfast restore" makes a data folder of it`},
		{load.ErrNotEmpty, `--to-server adds a dump to what a running server holds`},
		{storage.ErrNode, `serve it with --node, or have it leave its cell before ("holdfast cluster leave")`},
		{storage.ErrInUse, `"holdfast backup" copies a running server`},
		{storage.ErrList, `restore a copy: without the list of tables nothing can be salvaged`},
		{storage.ErrLoss, `restore a copy, or ` + salvage + `, or give up what is missing with --accept-loss ("holdfast serve" and "holdfast compact", or "holdfast cluster found" for the last node of a cell)`},
		{storage.ErrTemporary, "temporary files go to " + os.TempDir() + ": set TMPDIR to a folder that has room and may be written"},
		{storage.ErrTooManyFiles, "raise the limit of the process (ulimit -n) or of the system (fs.file-max)"},
		{storage.ErrRefused, "check that this user may read the files of the folder, and write them unless it only looks, that the file system is not mounted read-only, and the limit of memory (ulimit -v)"},
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
	return ""
}
