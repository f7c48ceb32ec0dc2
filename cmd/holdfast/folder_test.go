package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestArgumentsThatAreNoFoldersAreRefused(t *testing.T) {
	dir := t.TempDir()
	file, dump := filepath.Join(dir, "file"), filepath.Join(dir, "dump")
	if err := os.WriteFile(file, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	done(t, "dump", filled(t), "-o", dump)
	isFile, below, missing := file+" is no folder: expected a data folder", "cannot look at the data folder "+filepath.Join(file, "x")+": not a directory", " does not exist: expected a data folder"
	for command, args := range map[string][]string{
		"dump": {"dump"}, "verify": {"verify"}, "compact": {"compact"}, "load": {"load"}, "abandon": {"load", "--abandon"},
		"serve": {"serve", "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--admin", "off", "--data"},
	} {
		code := exitFailed
		if command == "verify" {
			code = exitBlind
		}
		for name, want := range map[string]string{file: isFile, filepath.Join(file, "x"): below, filepath.Join(dir, "missing"): missing} {
			if want == missing && (command == "load" || command == "serve") { // they make one
				continue
			}
			all := append(slices.Clone(args), name)
			if command == "load" {
				all = append(all, dump)
			}
			t.Run(command+" "+filepath.Base(name), func(t *testing.T) { oneSentence(t, cli(t, all...), code, want) })
		}
	}
}

func TestErrorsOfTemporaryFilesNameWhereTheyGo(t *testing.T) {
	dir := filled(t)
	temp := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", temp)
	oneSentence(t, cli(t, "dump", dir), exitFailed, "; temporary files go to "+temp+": set TMPDIR to a folder")
	oneSentence(t, cli(t, "verify", dir), exitBlind, "; temporary files go to "+temp+": set TMPDIR to a folder")
	for path, hint := range map[string]bool{
		temp: true, filepath.Join(temp, viewPrefix+"17", "00001.mem"): true, filepath.Join(temp, "data", "format"): false,
	} {
		err := fmt.Errorf("look: %w", &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC})
		if got := tempHint(err); !errors.Is(got, syscall.ENOSPC) || strings.Contains(got.Error(), "TMPDIR") != hint {
			t.Errorf("%s: %v, want a hint: %t", path, got, hint)
		}
	}
}
