package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// versionCmd prints what a binary was made of.
type versionCmd struct {
	JSON bool `help:"Print a JSON object."`
}

func (c *versionCmd) Help() string {
	return `Prints the version, the commit that the program was built from, the date of that commit, and the data format that it writes. A build outside of a git checkout does not know its commit.

Example:

    holdfast version --json`
}

// release is the number of this version, which CHANGELOG.md begins with.
const release = "0.5.0"

const unknown = "unknown"

// versions is what there is to know of a binary.
type versions struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // that it was built from
	Date     string `json:"date"`     // of the commit, as RFC 3339 has it
	Modified bool   `json:"modified"` // the files were not those of the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Format   int    `json:"format"` // of the data folders that it reads and writes
}

func (c *versionCmd) Run(p *terminal.Process) error {
	v := thisBuild()
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(v)
	}
	changed := ""
	if v.Modified {
		changed = " with changes"
	}
	_, err := fmt.Fprintf(p.Stdout, "holdfast %s (commit %.12s%s, date %s, %s %s/%s, data format %d)\n",
		v.Version, v.Commit, changed, v.Date, v.Go, v.OS, v.Arch, v.Format)
	return err
}

func thisBuild() versions {
	info, _ := debug.ReadBuildInfo()
	return versionsOf(info)
}

// versionsOf reads what the build has recorded, nil if nothing.
func versionsOf(info *debug.BuildInfo) versions {
	v := versions{release, unknown, unknown, false, runtime.Version(), runtime.GOOS, runtime.GOARCH, content.FormatVersion}
	if info == nil {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
