package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABackupIsVerifiedWithoutAServer(t *testing.T) {
	t.Parallel()
	s := filledServer(t)
	dir := t.TempDir()
	for kind, c := range map[string]struct {
		args []string
		want string
	}{
		"msgpack": {nil, "packets: 13, queues: 7, strings and hashes: 6, "},
		"jsonl":   {[]string{"--format", "jsonl"}, "packets: 13, queues: 7, strings and hashes: 6, "},
		"files":   {[]string{"--files"}, "files: "},
	} {
		file := filepath.Join(dir, kind)
		s.must(t, append([]string{"backup", "--to", file}, c.args...)...)
		if got := done(t, "verify", file); !strings.HasPrefix(got, "sound: "+file+", bytes: ") || !strings.Contains(got, c.want) {
			t.Errorf("%s: printed %q", kind, got)
		}
		whole := readFile(t, file)
		if r := (command{stdin: string(whole)}).run(t.Context(), "verify", "-", "--json"); r.code != exitOK || !strings.HasPrefix(r.stdout, `{"sound":true,"file":"-","bytes":`) {
			t.Errorf("%s: %+v", kind, r)
		}
		changed := bytes.Clone(whole)
		changed[len(changed)/2] ^= 1
		for name, text := range map[string][]byte{"cut": whole[:len(whole)-3], "half": whole[:len(whole)/2], "changed": changed, "text": []byte("text"), "empty": nil} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			oneErrorLine(t, cli(t, "verify", file), exitUnsound, "is no whole backup: ")
			var said struct {
				Sound bool
				Error string
			}
			r := cli(t, "verify", file, "--json")
			if err := json.Unmarshal([]byte(r.stdout), &said); err != nil || said.Sound || said.Error == "" || r.code != exitUnsound {
				t.Errorf("%s, %s: %+v, %v", kind, name, r, err)
			}
		}
	}
}

func TestABackupOfFilesOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "holdfast.tar")
	serve(t, filepath.Join(dir, "data"), "--admin", "127.0.0.1:0").must(t, "backup", "--to", file, "--files")
	if err := os.WriteFile(file, bytes.Replace(readFile(t, file), []byte(`"folder": 7`), []byte(`"folder": 6`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	oneErrorLine(t, cli(t, "verify", file), exitNotChecked, "version "+release+" of the program wrote it (archive 1, data format 6)")
	oneErrorLine(t, cli(t, "restore", file, filepath.Join(dir, "restored")), exitFailed, "load a dump of the folder that it makes")
}

func TestTheNewestOfAFolderOfBackupsIsVerified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	puts(t, dir, "holdfast-20200101T000000.000Z.msgpack", "other")
	oneErrorLine(t, cli(t, "verify", dir), exitUnsound, "holdfast-20200101T000000.000Z.msgpack is no whole backup")
	file := strings.TrimSpace(s.must(t, "backup", "--to", dir, "--files"))
	if got := done(t, "verify", dir+"/"); !strings.HasPrefix(got, "sound: "+file+", ") {
		t.Errorf("printed %q", got)
	}
	// A data folder is one, whatever else lies there.
	data := filled(t)
	puts(t, data, "holdfast-20200101T000000.000Z.msgpack")
	if got := done(t, "verify", data); !strings.Contains(got, "sound: ") {
		t.Errorf("printed %q", got)
	}
	for name, want := range map[string]string{filepath.Join(dir, "none"): "does not exist", t.TempDir(): ""} {
		oneErrorLine(t, cli(t, "verify", name), exitNotChecked, want)
	}
}
