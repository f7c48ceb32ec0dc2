package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// boardOf is a server for two connections. On the first it says how many items it has. On the
// second it answers the n-th line, from 1 on, with what reply returns. It hangs up when that is
// nothing.
func boardOf(t *testing.T, reply func(n int, line string) string) (addr string, got func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan []string, 1)
	go func() { // ends with its connection or the listener
		var lines []string
		defer func() { all <- lines }()
		answerStats(l)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewScanner(conn)
		for in.Scan() {
			lines = append(lines, strings.TrimSuffix(in.Text(), "\r"))
			answer := reply(len(lines), in.Text())
			if _, err := io.WriteString(conn, answer); err != nil || answer == "" {
				return
			}
		}
	}()
	return l.Addr().String(), func() []string { return <-all }
}

// answerStats takes one connection and answers its one request.
func answerStats(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.Copy(io.Discard, conn)
	_, _ = io.WriteString(conn, "STAT uptime 1\r\nSTAT items 0\r\nEND\r\n")
}

func TestImportSendsEachLineAsAnUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot string
		want     []string
	}{
		"two lines":            {"17 250\n4294967295 0\n", []string{"update 17 250", "update 4294967295 0"}},
		"no end of line":       {"17 250\n1 2", []string{"update 17 250", "update 1 2"}},
		"lines of CR LF":       {"17 250\r\n1 2\r\n", []string{"update 17 250", "update 1 2"}},
		"an item twice":        {"1 2\n1 2\n", []string{"update 1 2", "update 1 2"}},
		"nothing":              {"", nil},
		"one line":             {"17 250\n", []string{"update 17 250"}},
		"blank lines":          {"\n17 250\n\r\n  \n1 2\n\n", []string{"update 17 250", "update 1 2"}},
		"only blank lines":     {"\n\n", nil},
		"spaces":               {"  17 250\n1   2  \r\n", []string{"update 17 250", "update 1 2"}},
		"more than the window": {strings.Repeat("4000000000 4000000000\n", 100_000), slicesOf("update 4000000000 4000000000", 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			addr, got := boardOf(t, func(int, string) string { return "OK\r\n" })
			r := command{stdin: c.snapshot}.run(t.Context(), "barbershop", "import", "-", "--barbershop", addr)
			if want := terminal.Plural(len(c.want), "line") + " imported\n"; r.code != exitOK || r.stdout != want || r.stderr != "" {
				t.Errorf("%+v, want %q", r, want)
			}
			if lines := got(); strings.Join(lines, "|") != strings.Join(c.want, "|") {
				t.Errorf("%d lines were sent, %.60q…; want %d", len(lines), lines, len(c.want))
			}
		})
	}
}

func slicesOf(line string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = line
	}
	return all
}

func TestImportNamesTheLineThatIsWrong(t *testing.T) {
	ok := func(int, string) string { return "OK\r\n" }
	for name, c := range map[string]struct {
		third string
		reply func(n int, line string) string
		want  string
	}{
		"a word":               {"seventeen 1", ok, "line 3"},
		"one number":           {"17", ok, "line 3"},
		"three numbers":        {"17 1 1", ok, "line 3"},
		"a tab":                {"17\t1", ok, "line 3"},
		"a sign":               {"17 +1", ok, "line 3"},
		"below 0":              {"-1 1", ok, "line 3"},
		"above 32 bits":        {"17 4294967296", ok, "line 3"},
		"behind blank lines":   {"\n \n1 1\n\nx", ok, "line 7: \"x\": expected an item and its score, whole numbers from 0 to 4294967295 with a space between, such as 17 250; lines before 6 are imported, go on with line 6"},
		"refused behind blank": {"\n\n1 1", onLine(3, "SERVER_ERROR\r\n"), "line 5: the server answers \"SERVER_ERROR\" instead of OK; lines before 3 are imported, those up to 6 may be"},
		"gone behind blank":    {"\n\n1 1", onLine(3, ""), "the server closed the connection; lines before 3 are imported, those up to 6 may be"},
		"bytes":                {"\xff\xfe", ok, "line 3"},
		"a line without end":   {strings.Repeat("1", 100_000), ok, "line 3: \"111111111111111111111111111111111111111111111111111111111111\": expected an item"},
		"where to go on":       {"x", ok, "lines before 3 are imported, go on with line 3"},
		"what the server says": {"1 1", onLine(3, "SERVER_ERROR no room\r\n"), `line 3: the server answers "SERVER_ERROR no room" instead of OK; lines before 3 are imported, those up to 4 may be`},
		"the server goes":      {"1 1", onLine(3, ""), "lines before 3 are imported, those up to 4 may be"},
		"two are refused": {"1 1", func(n int, _ string) string {
			if n == 1 || n == 3 {
				return "SERVER_ERROR\r\n"
			}
			return "OK\r\n"
		}, "line 1: the server answers \"SERVER_ERROR\" instead of OK; lines up to 4 may be imported"},
		"all are refused": {"1 1", func(int, string) string { return "CLIENT_ERROR\r\n" }, "nothing is imported"},
		"the others, too": {"1 1", func(n int, _ string) string {
			if n < 3 {
				return "OK\r\n"
			}
			return "SERVER_ERROR\r\n"
		}, "line 3: the server answers \"SERVER_ERROR\" instead of OK; lines before 3 are imported, go on with line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "snapshot")
			if err := os.WriteFile(file, []byte("1 1\n2 2\n"+c.third+"\n4 4\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			addr, _ := boardOf(t, c.reply)
			oneErrorLine(t, command{}.run(t.Context(), "barbershop", "import", file, "--barbershop", addr), exitFailed, c.want)
		})
	}
}

// onLine answers one line in its own way and the others OK.
func onLine(line int, reply string) func(int, string) string {
	return func(n int, _ string) string {
		if n == line {
			return reply
		}
		return "OK\r\n"
	}
}

func TestImportGivesAMuteServerUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	args := []string{"barbershop", "import", "-", "--barbershop", l.Addr().String(), "--timeout"}
	oneErrorLine(t, command{stdin: "1 1\n"}.run(t.Context(), append(args, "20ms")...), exitFailed, "i/o timeout; check that it speaks barbershop; nothing is imported")
	conn, err := l.Accept() // the one that was given up
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	go answerStats(l) // ends with a connection or the listener
	oneErrorLine(t, command{stdin: "1 1\n"}.run(t.Context(), append(args, "1s")...), exitFailed, "the server did not answer within 1s; lines up to 1 may be imported")
}

func TestImportHintsAtTheBoardsPort(t *testing.T) {
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0")
	for _, protocol := range []string{"pinpriq", "admin"} {
		for name, snapshot := range map[string]string{"short": "17 250\n", "long": strings.Repeat("17 250\n", 1_000_000)} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				r := s.runWith(t, snapshot, "barbershop", "import", "-", "--timeout", "1h", "--barbershop", s.addrs[protocol])
				oneErrorLine(t, r, exitFailed, "; check that it speaks barbershop; ")
			})
		}
	}
}

func TestImportWaitsForASlowSnapshot(t *testing.T) {
	const timeout = time.Second
	addr, _ := boardOf(t, func(int, string) string { return "OK\r\n" })
	read, write := io.Pipe()
	imports := command{from: read}.start(t, "barbershop", "import", "-", "--timeout", timeout.String(), "--barbershop", addr)
	_, _ = io.WriteString(write, strings.Repeat("1 1\n", 20_000))
	time.Sleep(timeout * 3 / 2) // the server owes nothing meanwhile
	_, _ = io.WriteString(write, "1 1\n")
	_ = write.Close()
	if r := <-imports.ended; r.code != exitOK || r.stdout != "20001 lines imported\n" {
		t.Errorf("%+v, want 20001 lines imported", r)
	}
}

func TestInterruptedImportSaysWhereToGoOn(t *testing.T) {
	addr, got := boardOf(t, func(int, string) string { return "OK\r\n" })
	read, write := io.Pipe()
	imports := command{from: read}.start(t, "barbershop", "import", "-", "--barbershop", addr)
	// Each write returns when it has been read, and a next one is only asked for after what was
	// read is sent.
	for range 3 {
		_, _ = io.WriteString(write, "1 1\n")
	}
	imports.interrupt()
	_, _ = io.WriteString(write, "1 1\n")
	r := <-imports.ended
	sent := len(got())
	oneErrorLine(t, r, exitFailed, fmt.Sprintf("interrupted; lines before %d are imported, go on with line %d", sent+1, sent+1))
	if sent < 2 {
		t.Errorf("%d lines were sent, want at least 2", sent)
	}
}
