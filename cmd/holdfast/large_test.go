package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/inject"
)

func TestTheLongestPayloadGoesThroughAllCommands(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	size := 8 << 20 // in make sweep the longest of all
	if inject.Runs() >= 100 {
		size = broker.MaxPayload
	}
	payload := string(bytes.Repeat(every, size/len(every)))
	work := t.TempDir()
	dir := filepath.Join(work, "data")
	s := serve(t, dir, "--max-payload", fmt.Sprintf("%dMiB", size>>20), "--admin", "127.0.0.1:0")
	if r := s.runWith(t, payload, "push", "q", "-"); r.code != exitOK {
		t.Fatalf("push: %+v", r)
	}
	line := strings.ReplaceAll(payload, "\n", "x")
	if r := s.runWith(t, "a\n"+line+"\nb", "push", "lines", "--lines"); r.code != exitOK {
		t.Fatalf("push --lines: %+v", r)
	}
	for i, want := range []string{"a", line, "b"} {
		if got := s.must(t, "pop", "lines", "--raw"); got != want {
			t.Errorf("line %d: popped %d bytes, want %d", i, len(got), len(want))
		}
	}
	if got := s.must(t, "peek", "q"); len(got) > 1<<16 { // which shows how it begins
		t.Errorf("peek prints %d bytes", len(got))
	}
	backup := filepath.Join(work, "backup")
	s.must(t, "backup", "--quiet", "--to", backup, "--format", "msgpack")
	copied := filepath.Join(work, "copied")
	s.must(t, "close", "q", "--yes")
	s.must(t, "work", "q", "--", "sh", "-c", "cat > "+copied)
	if !bytes.Equal(readFile(t, copied), []byte(payload)) {
		t.Error("the command of work got another payload")
	}
	if code := s.stop(); code != exitOK {
		t.Fatalf("the server ended with %d", code)
	}
	loaded, file := filepath.Join(work, "loaded"), filepath.Join(work, "dump")
	done(t, "load", backup, loaded, "--quiet")
	done(t, "verify", loaded, "--quiet")
	done(t, "compact", loaded, "--quiet")
	done(t, "dump", loaded, "-o", file, "--quiet")
	loaded = filepath.Join(work, "again")
	done(t, "load", file, loaded, "--quiet")
	s = serve(t, loaded) // which takes no payload of more than 1 MiB
	for _, args := range [][]string{{"push", "q", payload[:2<<20]}, {"load", "--to-server", backup}} {
		oneErrorLine(t, s.run(t, args...), exitFailed, "; for longer payloads the server needs a larger --max-payload")
	}
	if got := s.must(t, "pop", "q", "--raw"); got != payload {
		t.Errorf("popped %d bytes of what was loaded, want %d", len(got), len(payload))
	}
}
