package doors

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The databases that need a server of their own run with -whole.
func init() { databases["PostgreSQL"], databases["MariaDB"] = postgres, mariadb }

func postgres(t *testing.T) *database {
	needsWhole(t)
	bin, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bin) == 0 {
		t.Skip("PostgreSQL is not installed: apt install postgresql")
	}
	python(t, "psycopg2")
	dir := folderForAll(t)
	output(t, unprivileged(program(t, bin[0]+"/initdb", "", "-D", dir+"/data", "-A", "trust", "-U", "shop", "--no-sync"), dir))
	awaitServer(t, "ready to accept connections", syscall.SIGQUIT,
		unprivileged(exec.Command(bin[0]+"/postgres", "-D", dir+"/data", "-k", dir, "-c", "listen_addresses=", "-F"), dir))
	var made atomic.Int64
	return &database{
		heading: "### PostgreSQL",
		fresh: func(t *testing.T) string {
			name := fmt.Sprint("shop", made.Add(1))
			output(t, program(t, bin[0]+"/createdb", "", "-h", dir, "-U", "shop", name))
			return fmt.Sprintf("host=%s user=shop dbname=%s sslmode=disable", dir, name)
		},
	}
}

func mariadb(t *testing.T) *database {
	needsWhole(t)
	installer := program(t, "mariadb-install-db", "apt install mariadb-server", "--no-defaults", "--skip-test-db")
	python(t, "pymysql")
	dir := folderForAll(t)
	installer.Args = append(installer.Args, "--datadir="+dir+"/data")
	output(t, unprivileged(installer, dir))
	awaitServer(t, "ready for connections", syscall.SIGKILL, unprivileged(exec.Command("mariadbd", "--no-defaults",
		"--datadir="+dir+"/data", "--socket="+dir+"/socket", "--pid-file="+dir+"/pid", "--skip-networking", "--skip-grant-tables"), dir))
	var made atomic.Int64
	return &database{
		heading: "### MySQL and MariaDB",
		fresh: func(t *testing.T) string {
			name, file := fmt.Sprint("shop", made.Add(1)), filepath.Join(t.TempDir(), "client")
			output(t, program(t, "mariadb", "", "--no-defaults", "--socket="+dir+"/socket", "-e", "CREATE DATABASE "+name))
			text := fmt.Sprintf("[client]\nsocket=%s/socket\nuser=root\ndatabase=%s\n", dir, name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		},
		connect: []string{"import psycopg2", "import pymysql",
			`psycopg2.connect(os.environ["DATABASE"])`, `pymysql.connect(read_default_file=os.environ["DATABASE"])`},
	}
}

func needsWhole(t *testing.T) {
	if !*whole {
		t.Skip("takes longer: make doors")
	}
}

// nobody is the user that servers of databases run as where the tests run as root: they refuse it.
const nobody = 65534

// folderForAll makes a folder that the server of a database may use.
func folderForAll(t *testing.T) string {
	dir, err := os.MkdirTemp("", "outbox") // a path that is short enough for a socket
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func unprivileged(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

// awaitServer starts a server of databases, which says when it serves. A signal ends it at once.
func awaitServer(t *testing.T, serves string, end os.Signal, cmd *exec.Cmd) {
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(end)
		_ = cmd.Wait()
	})
	lines, said := bufio.NewScanner(log), ""
	for lines.Scan() {
		if said += lines.Text() + "\n"; strings.Contains(lines.Text(), serves) {
			go func() { _, _ = io.Copy(io.Discard, log) }() // ends with the server
			return
		}
	}
	t.Fatalf("%s does not start; it says\n%s", cmd, said)
}

func TestRelaysShareTheWorkByALock(t *testing.T) {
	t.Parallel()
	committed := []string{"1", "2", "3", "4", "5"}
	for name, start := range map[string]func(*testing.T) *database{"PostgreSQL": postgres, "MariaDB": mariadb} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := start(t).open(t)
			locked := []string{"LIMIT 2", "LIMIT 100 FOR UPDATE SKIP LOCKED"}
			if name == "MariaDB" {
				locked = append(locked, "rows = db.cursor()\n",
					"rows = db.cursor()\nrows.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')\n")
			}
			o.commit(t, committed[:4]...)
			first := o.relay(t, slices.Concat(stopAt("after the push"), locked, toTheEnd)...) // more than there is
			first.stops(t)
			o.commit(t, committed[4:]...) // the lock keeps nobody from adding rows
			o.drain(t, slices.Concat([]string{"LIMIT 100", "LIMIT 2"}, locked)...)
			if got := o.left(t); got != "4" {
				t.Errorf("%s rows are left, want the 4 that the first relay has", got)
			}
			_, _ = io.WriteString(first.in, strings.Repeat("\n", 9))
			if err := first.cmd.Wait(); err != nil {
				t.Errorf("the first relay ends with %v", err)
			}
			if got := o.pushed(t); !slices.Equal(slices.Sorted(slices.Values(got)), committed) || o.left(t) != "0" {
				t.Errorf("the queue got %q, want each of %q once", got, committed)
			}
		})
	}
}

// Writers commit and roll back, and workers are fast, while the relay and the server are killed.
func TestAnOutboxThroughKillsAtAnyMoment(t *testing.T) {
	t.Parallel()
	needsWhole(t)
	onDatabases(t, func(t *testing.T, d *database) {
		o := d.open(t)
		var committed []string
		for i := range 2000 {
			committed = append(committed, strconv.Itoa(i))
		}
		var writes strings.Builder
		for _, p := range committed {
			fmt.Fprintf(&writes, "BEGIN; INSERT INTO outbox (queue, payload) VALUES ('mails', '%s'); COMMIT;", p)
			fmt.Fprint(&writes, "BEGIN; INSERT INTO outbox (queue, payload) VALUES ('mails', 'rolled back'); ROLLBACK;")
		}
		written := make(chan error, 1)
		writer := o.statements(t, writes.String())
		go func() { written <- writer.Run() }()
		for kill := range 16 {
			r := o.relay(t, "LIMIT 100", "LIMIT 9", "while True:\n", "print('here', flush=True)\nwhile True:\n")
			r.stops(t)                                 // it has connected, and goes on
			time.Sleep(rand.N(300 * time.Millisecond)) // any moment
			if kill%4 == 0 {
				o.server.kill()
				o.server.again(t)
			}
			r.kill()
			o.work(t)
			t.Logf("kill %d: the queue has got %d", kill, len(o.pushed(t)))
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		o.drain(t)
		o.onePacketEach(t, committed)
	})
}

// The relay in Go is built in a module of its own, with a driver, and runs.
func TestTheRelayInGoPushesEachRowOnce(t *testing.T) {
	t.Parallel()
	o := postgres(t).open(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "relay.go"), []byte(fromPage(t, "## The relay in Go", "go")), 0o600); err != nil {
		t.Fatal(err)
	}
	const module = "github.com/holdfast-queue/holdfast"
	build := program(t, "sh", "", "-ec", fmt.Sprintf("go mod init example.org/relay\n"+
		"go mod edit -require %[1]s@v0.5.0 -replace %[1]s=%[2]s\ngo get github.com/lib/pq@v1.10.9\ngo mod tidy\ngo build .", module, root))
	build.Dir = dir
	build.Env = append(build.Env, "GOFLAGS=")
	if said, err := build.CombinedOutput(); err != nil {
		t.Skipf("the driver cannot be had: %s", said)
	}
	committed := []string{"1", "2", "3", "4", "5"}
	o.commit(t, committed...)
	for kills := 0; o.left(t) != "0"; kills++ {
		cmd := program(t, filepath.Join(dir, "relay"), "")
		cmd.Env = append(cmd.Env, "DATABASE="+o.address, "HOLDFAST_URL=redis://"+o.server.addr)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(time.Duration(1+kills) * 50 * time.Millisecond)) // any moment
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		o.work(t)
	}
	o.onePacketEach(t, committed)
}
