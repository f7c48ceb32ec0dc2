package resp

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-queue/holdfast/netproto/inmemory"
)

func TestConnectionCommands(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.ask("PING", "+PONG\r\n")
	c.ask("ping x", "$1\r\nx\r\n")
	c.ask("PiNg x y", "-ERR wrong number of arguments for 'ping' command\r\n")
	c.ask("ECHO hello", "$5\r\nhello\r\n")
	c.ask("echo", "-ERR wrong number of arguments for 'echo' command\r\n")
	c.ask("SELECT 0", "+OK\r\n")
	c.ask("SELECT 15", "+OK\r\n")
	c.ask("SELECT 16", "-ERR DB index is out of range\r\n")
	c.ask("SELECT x", "-ERR value is not an integer or out of range\r\n")
	c.ask("nonsense a b", "-ERR unknown command 'nonsense', with args beginning with: 'a' 'b' \r\n")
	c.ask("client nonsense", "-ERR unknown subcommand 'nonsense'. Try CLIENT HELP.\r\n")
	c.ask("client", "-ERR wrong number of arguments for 'client' command\r\n")
	c.send("PING\r\n\r\n  ping 'a b' \r\n")
	c.want("+PONG\r\n$3\r\na b\r\n")
	c.ask("QUIT", "+OK\r\n")
	c.wantEnd()
}

func TestNothingFollowsQuit(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.send("QUIT\r\nPING\r\n")
	c.want("+OK\r\n")
	c.wantEnd()
}

func TestAPipelineIsAnsweredInOnePiece(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	const n = 64
	c.send(strings.Repeat("PING\r\n", n))
	got := make([]byte, n*len("+PONG\r\n"))
	if size, err := c.Read(got); err != nil || size != len(got) {
		t.Errorf("the first read gave %d bytes (%v), want %d", size, err, len(got))
	}
}

func TestHelloChoosesTheVersion(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	fields := func(version int) string {
		return fmt.Sprintf("$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:%d\r\n"+
			"$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n", version)
	}
	c.ask("HELLO", "*14\r\n"+fields(2))
	c.ask("CLIENT GETNAME", "$-1\r\n")
	c.ask("HELLO 3 SETNAME me", "%7\r\n"+fields(3))
	c.ask("CLIENT GETNAME", "$2\r\nme\r\n")
	c.ask("CLIENT SETNAME a\nb", "-ERR Client names cannot contain spaces, newlines or special characters.\r\n")
	c.ask("HELLO 4", "-NOPROTO unsupported protocol version\r\n")
	c.ask("HELLO x", "-ERR Protocol version is not an integer or out of range\r\n")
	c.ask("HELLO 2 nonsense", "-ERR Syntax error in HELLO option 'nonsense'\r\n")
	c.ask("RESET", "+RESET\r\n")
	c.ask("CLIENT GETNAME", "$-1\r\n")
	c.ask("HELLO 2", "*14\r\n"+fields(2))
	c.ask("AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n")
	c.ask("AUTH default x", "+OK\r\n")
}

func TestNothingIsDoneBeforeThePassword(t *testing.T) {
	d := newDoor(t, Config{Password: "secret"})
	c := d.dial()
	const refused, wrong = "-NOAUTH Authentication required.\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	c.ask("PING", refused)
	c.ask("CLIENT ID", refused)
	c.ask("AUTH wrong", wrong)
	c.ask("AUTH other secret", wrong)
	c.ask("AUTH a b c", "-ERR syntax error\r\n")
	c.ask("HELLO 3 AUTH default wrong", wrong)
	if got := c.line("HELLO", "3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called") {
		t.Errorf("HELLO: %q", got)
	}
	c.ask("PING", refused)
	c.ask("AUTH secret", "+OK\r\n")
	c.ask("PING", "+PONG\r\n")
	c.ask("RESET", "+RESET\r\n")
	c.ask("PING", refused)
	if got := c.line("HELLO", "3", "AUTH", "default", "secret"); got != "%7" {
		t.Errorf("HELLO with the password: %q", got)
	}

	for name, request := range map[string]string{
		"unauthenticated multibulk length": "*11\r\n",
		"unauthenticated bulk length":      "*1\r\n$16385\r\n",
	} {
		c := d.dial()
		c.send(request)
		c.want("-ERR Protocol error: " + name + "\r\n")
		c.wantEnd()
	}
}

func TestRepliesCanBeSwitchedOff(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.send("CLIENT REPLY OFF\r\nPING\r\nnonsense\r\nCLIENT REPLY ON\r\n")
	c.want("+OK\r\n")
	c.send("CLIENT REPLY SKIP\r\nPING x\r\nPING y\r\n")
	c.want("$1\r\ny\r\n")
	c.send("CLIENT REPLY SKIP\r\nCLIENT REPLY ON\r\n")
	c.want("+OK\r\n")
	c.ask("CLIENT REPLY x", "-ERR syntax error\r\n")
}

func TestClientsAreListedAndKilled(t *testing.T) {
	d := newDoor(t, Config{})
	a, b, other := d.dial(), d.dial(), d.dial()
	for i, c := range []*conn{a, b, other} {
		c.ask("CLIENT ID", fmt.Sprintf(":%d\r\n", i+1))
	}
	b.ask("CLIENT SETNAME worker", "+OK\r\n")
	list := a.text("CLIENT", "LIST")
	if got := a.text("INFO", "server"); !strings.Contains(got, "tcp_port:6379\r\n") {
		t.Errorf("no port in:\n%s", got)
	}
	for _, want := range []string{"id=1 addr=" + a.wire.Addr().String() + " laddr=" + inmemory.Local.String(), "cmd=client|list", "name=worker", "flags=N db=0", "resp=2"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in the list of clients:\n%s", want, list)
		}
	}
	if got := a.text("CLIENT", "LIST", "ID", "2", "77", "2"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "id=2 ") {
		t.Errorf("CLIENT LIST ID: %s", got)
	}
	a.ask("CLIENT KILL ID x", "-ERR client-id should be greater than 0\r\n")
	a.ask("CLIENT KILL TYPE x", "-ERR Unknown client type 'x'\r\n")
	a.ask("CLIENT KILL ID 1 wrong", "-ERR syntax error\r\n")
	a.ask("CLIENT KILL USER x", "-ERR No such user 'x'\r\n")
	a.ask("CLIENT KILL 1.2.3.4:5", "-ERR No such client\r\n")
	a.ask("CLIENT KILL ID 2", ":1\r\n")
	b.wantEnd()
	a.ask("CLIENT KILL ID 2", ":0\r\n")
	a.ask("CLIENT KILL "+other.wire.Addr().String(), "+OK\r\n")
	other.wantEnd()
	if got := a.text("CLIENT", "LIST"); strings.Count(got, "\n") != 1 {
		t.Errorf("killed clients are listed:\n%s", got)
	}
	a.ask("CLIENT KILL SKIPME no", ":1\r\n")
	a.wantEnd()
}

func TestACommandThatIsSwitchedOffSaysSo(t *testing.T) {
	c := newDoor(t, Config{Disable: []string{"ECHO", "config"}}).dial()
	c.ask("Echo x", "-ERR command 'Echo' is switched off on this server\r\n")
	c.ask("CONFIG GET save", "-ERR command 'CONFIG' is switched off on this server\r\n")
	if err := CheckDisable([]string{"Echo"}); err != nil {
		t.Error(err)
	}
	if CheckDisable([]string{"ECHO", "NONSENSE"}) == nil {
		t.Error("a command that does not exist can be disabled")
	}
}

func TestWhatTheServerTellsOfItself(t *testing.T) {
	d := newDoor(t, Config{Version: "1.2.3"})
	c := d.dial()
	all := c.text("INFO")
	for _, want := range []string{"# Server\r\nredis_version:7.0.15\r\nholdfast_version:1.2.3\r\n", "\r\n\r\n# Clients\r\nconnected_clients:1\r\n", "loading:0\r\n", "role:master\r\n", "# Keyspace\r\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in INFO:\n%s", want, all)
		}
	}
	if got := c.text("INFO", "Persistence"); !strings.HasPrefix(got, "# Persistence\r\nloading:0\r\n") || strings.Contains(got, "# Server") {
		t.Errorf("INFO Persistence:\n%s", got)
	}
	c.ask("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n")
	c.ask("CONFIG GET APPEND* data?ases", "*4\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$9\r\ndatabases\r\n$2\r\n16\r\n")
	c.ask("CONFIG GET nonsense", "*0\r\n")
	c.ask("CONFIG GET hash-max-zip*value", "*2\r\n$22\r\nhash-max-ziplist-value\r\n$2\r\n64\r\n")
	c.ask("CONFIG RESETSTAT", "+OK\r\n")
	c.ask("COMMAND GETKEYS WATCH a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n")
	c.ask("COMMAND GETKEYS nonsense x", "-ERR Invalid command specified\r\n")
	c.ask("COMMAND GETKEYS ECHO x y", "-ERR Invalid number of arguments specified for command\r\n")
	c.ask("COMMAND GETKEYS PING x", "-ERR The command has no key arguments\r\n")
	c.ask("COMMAND COUNT", fmt.Sprintf(":%d\r\n", len(newTable())))
	c.ask("COMMAND INFO echo x", "*2\r\n*10\r\n$4\r\necho\r\n:2\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*0\r\n$-1\r\n")
	c.ask("COMMAND LIST FILTERBY PATTERN ec*", "*1\r\n$4\r\necho\r\n")
	if got := c.line("TIME"); got != "*2" {
		t.Errorf("TIME: %q", got)
	}
}

func TestWrongPasswordsAreLogged(t *testing.T) {
	var log strings.Builder
	d := newDoor(t, Config{Password: "right", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := d.dial()
	c.ask("AUTH right", "+OK\r\n")
	if got := log.String(); got != "" {
		t.Errorf("the right password is logged: %q", got)
	}
	c.ask("AUTH guess", "-"+errWrongPass+"\r\n")
	c.ask("HELLO 3 AUTH default guess", "-"+errWrongPass+"\r\n")
	want := `level=WARN msg="login failed" protocol=redis remote=` + c.wire.Addr().String() + ` user=default error="wrong user or password"` + "\n"
	if got := log.String(); strings.Count(got, want) != 2 || strings.Contains(got, "guess") {
		t.Errorf("the log is %q, want twice %q", got, want)
	}
}

func TestAWrongPasswordIsLoggedThoughItsClientHangsUp(t *testing.T) {
	slow(t, func(d *door) {
		var log strings.Builder
		d.protocol.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := d.dial()
		c.send("AUTH u wrong\r\n")
		d.settle()
		synctest.Wait() // until its penalty begins
		_ = c.Close()
		d.settle()
		synctest.Wait() // until it has ended
		d.settle()
		if got, want := log.String(), `remote=`+c.wire.Addr().String()+` user=u error="wrong`; !strings.Contains(got, want) {
			t.Errorf("the log is %q, want %q", got, want)
		}
	})
}
