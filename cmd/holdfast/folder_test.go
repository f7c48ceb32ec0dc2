package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
