package cluster

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var plant = flag.Bool("planted", false, "build the program with each bug, and see that it is found")

// bug is a change of the source. What it replaces stands there exactly once.
type bug struct {
	name     string
	file     string // from the root of the project
	old, new string
	fault    string // part of the name of the fault that shows it
}

func bugs() []bug {
	return []bug{
		{"no fence", "storage/cell/append.go",
			"If(t.mine(), unchanged(keyHead, t.head))", "If()", "by hand"},
		{"the cut is at the highest floor", "storage/cell/cut.go",
			"voters[(len(voters)-1)/2]", "voters[len(voters)-1]", "power"},
		{"a floor is written before tables are adopted", "storage/flusher.go",
			"list := s.tables.List()\n\tif list.Floor", "if s.opt.Log != nil {\n\t\ts.opt.Log.Release(w.upto.Batch)\n\t\ttime.Sleep(5 * time.Second)\n\t}\n\tlist := s.tables.List()\n\tif list.Floor", "power"},
		{"parts without the last one are taken", "storage/cell/claim.go",
			", clientv3.OpDelete(keyPart(s.end.Batch+1, 0), clientv3.WithRange(endLog))", "", "kill -9 of the owner"},
	}
}

const root = "../.."

// source returns the file of a bug with it.
func (b bug) source() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), b.old); n != 1 || b.new == b.old {
		return "", errors.New(b.file + " has not exactly once what is to be replaced: " + b.old)
	}
	return strings.Replace(string(text), b.old, b.new, 1), nil
}

// overlay returns a file that has the go command build with a bug.
func (b bug) overlay(t *testing.T) string {
	t.Helper()
	text, err := b.source()
	if err != nil {
		t.Fatal(err)
	}
	was, err := filepath.Abs(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	with, name := filepath.Join(dir, "with.go"), filepath.Join(dir, "overlay")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{was: with}})
	if err := errors.Join(err, os.WriteFile(with, []byte(text), 0o600), os.WriteFile(name, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPlantedBugsFitTheSource(t *testing.T) {
	for _, b := range bugs() {
		if _, err := b.source(); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	if !*plant {
		t.Skip("skipped: -planted builds the program with each bug")
	}
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			begun := time.Now()
			c := onLoopback(t, build(t, b.overlay(t)))
			c.makeUntilFound(b.fault, 20)
			found := c.judge.found()
			if len(found) == 0 {
				t.Fatalf("the bug is not found in %v", time.Since(begun).Round(time.Second))
			}
			t.Logf("found after %v: %.300s", time.Since(begun).Round(time.Second), found[0])
		})
	}
}
