package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkMemory reports the most memory that an offline command takes, as the kernel counts it:
// with what it maps of files. The folder has 2 M packets of 128 bytes of seven priorities.
func BenchmarkMemory(b *testing.B) {
	const packets = 2_000_000
	dir := b.TempDir()
	dump, folder := filepath.Join(dir, "dump"), filepath.Join(dir, "data")
	writeDump(b, dump, packets)
	for _, row := range []struct {
		name string
		args []string
	}{
		{"load", []string{"load", dump, folder}},
		{"verify", []string{"verify", folder}},
		{"dump", []string{"dump", folder, "-o", filepath.Join(dir, "again")}},
		{"compact", []string{"compact", folder}},
	} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				if row.name == "load" {
					if err := os.RemoveAll(folder); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(peakMemory(b, row.args...)/1e6, "peak-MB")
			}
			b.ReportMetric(packets*float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}

// peakMemory runs the program and returns the most bytes that were resident. The kernel also counts
// what this process had when it began the other, which is little: nothing large is made here.
func peakMemory(b *testing.B, args ...string) float64 {
	b.Helper()
	cmd := itself(b, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v: %s", args, err, out)
	}
	return float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024
}

// writeDump writes a dump of so many packets, as another program may.
func writeDump(b *testing.B, name string, packets int) {
	b.Helper()
	file, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	const first, priorities = uint64(1 << 63), 7
	w := bufio.NewWriterSize(file, 1<<20) // its first error stays
	fmt.Fprintf(w, `{"type":"holdfast","version":1,"next_sequence":"%d","low_sequence":"%d","next_queue":2}`+"\n",
		first+uint64(packets), first-1)
	fmt.Fprintln(w, `{"type":"queue","id":1,"queue":"jobs"}`)
	payload := strings.Repeat("abcdefgh", 128/8)
	for priority := range priorities {
		for i := priority; i < packets; i += priorities {
			fmt.Fprintf(w, `{"type":"packet","queue":"jobs","priority":%d,"sequence":"%d","key":"%08d","payload":"%s","state":"ready","enqueued_at":1800000000000}`+"\n",
				priority+1, first+uint64(i), i, payload)
		}
	}
	fmt.Fprintf(w, `{"type":"end","packets":%d,"queues":1}`+"\n", packets)
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}
