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

func TestNothingIsWrittenIntoADataFolder(t *testing.T) {
	dir, work := filled(t), t.TempDir()
	link := filepath.Join(work, "link")
	if err := os.Symlink(filepath.Join(dir, "db"), link); err != nil {
		t.Fatal(err)
	}
	damaged := filled(t)
	if err := os.Remove(filepath.Join(damaged, "format")); err != nil {
		t.Fatal(err)
	}
	addr := serve(t, filepath.Join(work, "served"), "--admin", "127.0.0.1:0").addrs["admin"]
	for name, args := range map[string][]string{
		"dump":                     {"dump", dir, "-o", filepath.Join(dir, "dump")},
		"dump over a file of it":   {"dump", dir, "-o", filepath.Join(dir, "format")},
		"dump below it":            {"dump", dir, "-o", filepath.Join(dir, "db", "dump")},
		"dump by a link":           {"dump", dir, "-o", filepath.Join(link, "dump")},
		"dump into a damaged one":  {"dump", damaged, "--salvage", "-o", filepath.Join(damaged, "dump")},
		"dump into another folder": {"dump", damaged, "--salvage", "-o", filepath.Join(dir, "dump")},
		"backup":                   {"backup", "--admin", addr, "--to", filepath.Join(work, "served", "backup")},
		"backup below it":          {"backup", "--admin", addr, "--to", filepath.Join(work, "served", "db", "backup")},
		"export":                   {"barbershop", "export", "--admin", addr, filepath.Join(work, "served", "snapshot")},
	} {
		t.Run(name, func(t *testing.T) { oneSentence(t, cli(t, args...), exitFailed, "lies in the data folder") })
	}
	for _, folder := range []string{dir, filepath.Join(dir, "db"), damaged} {
		names, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(name.Name(), "dump") {
				t.Errorf("%s holds %s", folder, name.Name())
			}
		}
	}
	beside := filepath.Join(filepath.Dir(dir), "dump") // the folder above is no data folder
	done(t, "dump", dir, "-o", beside)
	readFile(t, beside)
}
