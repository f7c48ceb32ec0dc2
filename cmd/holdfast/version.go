package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-queue/holdfast/storage"
)

// versionCmd prints versions.
type versionCmd struct {
	JSON bool `help:"Print a JSON object."`
}

// Help is shown below the usage line.
func (c *versionCmd) Help() string {
	return `Example:

    holdfast version --json`
}

// versions is what there is to know of a binary.
type versions struct {
	Version string `json:"version"` // of the module, as the build recorded it
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Format  int    `json:"format"` // the newest data format it reads, and the one it writes
}

// Run prints.
func (c *versionCmd) Run(p *program) error {
	v := versions{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, storage.FormatVersion}
	if c.JSON {
		return json.NewEncoder(p.stdout).Encode(v)
	}
	_, err := fmt.Fprintf(p.stdout, "holdfast %s (%s %s/%s, data format %d)\n", v.Version, v.Go, v.OS, v.Arch, v.Format)
	return err
}

// version is the version of the module, one word.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
