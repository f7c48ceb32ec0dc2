package storage

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// grown gives a file a size without taking room on the disk.
func grown(t *testing.T, name string, size int64) {
	t.Helper()
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
}

func TestARecordThatPromisesMoreThanItHasTakesNoMemory(t *testing.T) {
	const gigabyte = "\xc6\x40\x00\x00\x00"
	for name, rec := range map[string]string{
		"name":        "\x81\x01" + gigabyte,
		"dead letter": "\x82\x01\xc4\x01q\x08" + gigabyte,
		"order":       "\x82\x01\xc4\x01q\x13\x81\xdb\x40\x00\x00\x00",
		"later field": "\x82\x01\xc4\x01q\x7f" + gigabyte,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decodeQueue([]byte(rec), new(Queue))
		runtime.ReadMemStats(&after)
		if grew := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrRecord) || grew > 1<<20 {
			t.Errorf("%s: %v, with %d bytes", name, err, grew)
		}
	}
}

func TestHugeFilesAreReportedWithoutMemoryForThem(t *testing.T) {
	folders := map[bool]damageFolder{false: newDamageFolder(t, false), true: newDamageFolder(t, true)}
	const huge = 1 << 30
	for name, row := range map[string]struct {
		kill   bool
		suffix string
		damage func(t *testing.T, name string)
	}{
		"a list of tables":   {false, manifestName, func(t *testing.T, name string) { grown(t, name, huge) }},
		"a table":            {false, tableSuffix, func(t *testing.T, name string) { grown(t, name, huge) }},
		"a table beyond all": {false, tableSuffix, func(t *testing.T, name string) { grown(t, name, maxLogBytes+1) }},
		"a log beyond all":   {true, logSuffix, func(t *testing.T, name string) { grown(t, name, maxLogBytes+1) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := folders[row.kill]
			dir := t.TempDir()
			copyFolder(t, f.dir, dir)
			found, err := filepath.Glob(filepath.Join(dir, dbName, "*"+row.suffix))
			if err != nil || len(found) == 0 {
				t.Fatal(found, err)
			}
			row.damage(t, found[0])
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			v, err := OpenView(dir, ViewOptions{Tolerant: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Findings()) == 0 {
				t.Error("nothing was found wrong")
			}
			v.Close()
			if v, err = OpenView(dir, ViewOptions{}); err == nil {
				v.Close()
				t.Error("it can be looked at")
			} else {
				reported(t, "view", err)
			}
			s, err := Open(dir, Options{MemTable: minMemTable})
			if err == nil {
				s.Close()
				t.Fatal("it opens")
			}
			reported(t, "open", err)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > huge/4 {
				t.Errorf("it took %d bytes of memory", took)
			}
		})
	}
}
