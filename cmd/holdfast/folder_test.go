package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestArgumentsThatAreNoFoldersAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, dump := filepath.Join(dir, "file"), filepath.Join(dir, "dump")
	if err := os.WriteFile(file, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	done(t, "dump", filled(t), "-o", dump)
	isFile, below, missing := file+" is not a folder: expected a data folder", "cannot read the data folder "+filepath.Join(file, "x")+": not a directory", " does not exist: expected a data folder"
	for command, args := range map[string][]string{
		"dump": {"dump"}, "verify": {"verify"}, "compact": {"compact"}, "load": {"load", dump},
		"serve": {"serve", "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--redis", "off", "--admin", "off", "--data"},
	} {
		code := exitFailed
		if command == "verify" {
			code = exitNotChecked
		}
		for name, want := range map[string]string{file: isFile, filepath.Join(file, "x"): below, filepath.Join(dir, "missing"): missing} {
			if want == missing && (command == "load" || command == "serve") { // they make one
				continue
			}
			code := code
			if want == isFile && command == "verify" { // it takes a backup, too
				code, want = exitUnsound, file+" is no whole backup: not a dump"
			}
			all := append(slices.Clone(args), name)
			t.Run(command+" "+filepath.Base(name), func(t *testing.T) { oneErrorLine(t, cli(t, all...), code, want) })
		}
	}
}
