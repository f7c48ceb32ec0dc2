package redis

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// Programs that are not installed are skipped. The script of continuous integration installs them.

// program returns a command that has not begun.
func program(t *testing.T, name, installed string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: %s", name, installed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = os.Environ()
	return cmd
}

// output runs a command to its end, which must be a good one, and returns what it said.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v; it says:\n%s", cmd, err, said.String())
	}
	return said.String()
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// typed types a session into redis-cli and compares what it shows. A line of the session that
// begins with > is typed, the lines below it are shown. Moments are any.
func typed(t *testing.T, addr, session string, args ...string) {
	t.Helper()
	var in, want strings.Builder
	for line := range strings.Lines(session) {
		if text, typed := strings.CutPrefix(line, "> "); typed {
			in.WriteString(text)
		} else {
			want.WriteString(line)
		}
	}
	cli := program(t, "redis-cli", "apt install redis-tools", append(args, "-p", portOf(t, addr), "--no-raw")...)
	cli.Stdin = strings.NewReader(in.String())
	moment := regexp.MustCompile(`[0-9]{13}`)
	got, wanted := moment.ReplaceAllString(output(t, cli), "moment"), moment.ReplaceAllString(want.String(), "moment")
	if got != wanted {
		t.Errorf("redis-cli shows\n%s\nwant\n%s", got, wanted)
	}
}

// The documents of the work queue show what redis-cli does.
func TestTheSessionsOfTheDocumentsTypedIntoRedisCLI(t *testing.T) {
	for name, section := range map[string]string{"ZKMQ.md": "Filters", "PRESSURE.md": "A session"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, part, _ := strings.Cut(string(text), "\n## "+section+"\n")
			part, _, _ = strings.Cut(part, "\n## ")
			var session strings.Builder
			for _, block := range strings.Split(part, "```console\n")[1:] {
				block, _, _ = strings.Cut(block, "```")
				session.WriteString(strings.ReplaceAll(block, "127.0.0.1:6379> ", "> "))
			}
			if session.Len() == 0 {
				t.Fatal("the section shows no session")
			}
			typed(t, startHoldfast(t, daemon.Config{}), session.String(), "-3")
		})
	}
}

func TestTheRFQDocumentTypedIntoRedisCLI(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		typed(t, addr, `> hmset rfq:mytopic:message:fe84ff90428611eabb02a4c3f0958f5d v 1 op tile
OK
> lpush rfq:mytopic:backlog fe84ff90428611eabb02a4c3f0958f5d
(integer) 1
> hmset rfq:mytopic:message:d97acb20428711eabb02a4c3f0958f5d v 1 op ndvi
OK
> lpush rfq:mytopic:backlog d97acb20428711eabb02a4c3f0958f5d
(integer) 2
> rpoplpush rfq:mytopic:backlog rfq:mytopic:nextlog
"fe84ff90428611eabb02a4c3f0958f5d"
> lrem rfq:mytopic:nextlog 0 fe84ff90428611eabb02a4c3f0958f5d
(integer) 1
> del rfq:mytopic:message:fe84ff90428611eabb02a4c3f0958f5d
(integer) 1
> rpoplpush rfq:mytopic:backlog rfq:mytopic:nextlog
"d97acb20428711eabb02a4c3f0958f5d"
> lrange rfq:mytopic:nextlog 0 -1
1) "d97acb20428711eabb02a4c3f0958f5d"
> lpush rfq:mytopic:backlog d97acb20428711eabb02a4c3f0958f5d
(integer) 1
> lrem rfq:mytopic:nextlog 0 d97acb20428711eabb02a4c3f0958f5d
(integer) 1
> hgetall rfq:mytopic:message:d97acb20428711eabb02a4c3f0958f5d
1) "v"
2) "1"
3) "op"
4) "ndvi"
`)
	})
}

func TestThePressureDocumentTypedIntoRedisCLI(t *testing.T) {
	const q = "__pressure__:q"
	session := strings.NewReplacer("Q", q)
	onEach(t, func(t *testing.T, addr string) {
		typed(t, addr, session.Replace(`> SETNX Q:bound 2
(integer) 1
> LPUSH Q:producer_free 1
(integer) 1
> LPUSH Q:consumer_free 1
(integer) 1
> LPUSH Q:not_full 1
(integer) 1
> EXISTS Q:bound
(integer) 1
> LLEN Q
(integer) 0
> EXISTS Q:closed
(integer) 0
> BRPOP Q:producer_free 0
1) "Q:producer_free"
2) "1"
> SET Q:producer producer_value
OK
> BRPOP Q:not_full 0
1) "Q:not_full"
2) "1"
> LPUSH Q data_value
(integer) 1
> GET Q:bound
"2"
> LPUSH Q:not_full 0
(integer) 1
> LTRIM Q:not_full 0 0
OK
> INCR Q:produced_messages
(integer) 1
> INCRBY Q:produced_bytes 10
(integer) 10
> LPUSH Q:producer_free 0
(integer) 1
> RPOP Q:producer_free
"0"
> RPOP Q:producer_free
(nil)
> LPUSH Q:producer_free 0
(integer) 1
> BRPOP Q:consumer_free 0
1) "Q:consumer_free"
2) "1"
> SET Q:consumer consumer_value
OK
> BRPOP Q Q:closed 0
1) "Q"
2) "data_value"
> LPUSH Q:not_full 0
(integer) 2
> LTRIM Q:not_full 0 0
OK
> LPUSH Q:consumer_free 0
(integer) 1
> LPUSH Q:closed 0 0
(integer) 2
> BRPOP Q Q:closed 0
1) "Q:closed"
2) "0"
> DEL Q:bound
(integer) 1
> LPUSH Q:not_full 0
(integer) 2
> DEL Q:producer
(integer) 1
> DEL Q:producer_free
(integer) 1
> DEL Q:consumer Q:consumer_free Q:not_full Q:closed Q:produced_messages Q:produced_bytes
(integer) 6
> DEL Q
(integer) 0
> KEYS *
(empty array)
`))
	})
}

func TestRedisBenchmarkRunsWithoutErrors(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		cmd := program(t, "redis-benchmark", "apt install redis-tools",
			"-p", portOf(t, addr), "-t", "lpush,rpop,set,get,incr,hset,mset", "-P", "16", "-n", "20000", "--csv")
		got := output(t, cmd)
		for _, test := range []string{"SET", "GET", "INCR", "LPUSH", "RPOP", "HSET", "MSET (10 keys)"} {
			if !strings.Contains(got, "\n\""+test+"\",") {
				t.Errorf("no result of %s in:\n%s", test, got)
			}
		}
		if strings.Contains(got, "WARNING") || strings.Contains(got, "rror") {
			t.Errorf("redis-benchmark complains:\n%s", got)
		}
	})
}

// python returns the interpreter that has redis-py: a package of the system is only seen by the
// system's own.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	t.Skip("redis-py is not installed: apt install python3-redis")
	return ""
}

func TestRedisPyDoesWhatRFQAndPressureDo(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		output(t, program(t, python(t), "", "testdata/redis_py.py", portOf(t, addr)))
	})
}

func TestWhatTaskiqSendsIsDone(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		output(t, program(t, python(t), "", "testdata/taskiq.py", portOf(t, addr)))
	})
}

// node returns a command of Node that runs a script, if its module can be found.
func node(t *testing.T, script, module string, args ...string) *exec.Cmd {
	t.Helper()
	moduleFile(t, module)
	return program(t, "node", "", append([]string{"testdata/" + script}, args...)...)
}

// moduleFile returns the path of a module of Node: it is installed here or in a folder that
// NODE_PATH names.
func moduleFile(t *testing.T, module string) string {
	t.Helper()
	path, err := program(t, "node", "apt install nodejs", "-p", "require.resolve(process.argv[1])", module).Output()
	if err != nil {
		t.Skipf("the module %s is not installed: npm install in a folder whose node_modules is NODE_PATH", module)
	}
	return strings.TrimSpace(string(path))
}

// nodeClient is a library of Node that speaks one of the protocols.
type nodeClient struct {
	library, module, protocol string
}

// nodeClients are all that users may have: module is the name by which .ci/run installs a library.
var nodeClients = []nodeClient{
	{"node_redis", "redis", "2"},
	{"node_redis", "redis", "3"},
	{"node_redis", "redis6", "2"},
	{"node_redis", "redis6", "3"},
	{"ioredis", "ioredis", "2"},
	{"ioredis", "ioredis6", "2"},
	{"ioredis", "ioredis6", "3"},
}

func (c nodeClient) String() string { return c.module + " RESP" + c.protocol }

func TestNodeClientsWork(t *testing.T) {
	for _, c := range nodeClients {
		t.Run(c.String(), func(t *testing.T) {
			onEach(t, func(t *testing.T, addr string) {
				output(t, node(t, c.library+".js", c.module, c.module, c.protocol, portOf(t, addr)))
			})
		})
	}
}

func TestTheRealRFQPublishesConsumesCrashesAndCommits(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		run := func(args ...string) *exec.Cmd {
			cmd := node(t, "rfq.js", "@robofarm/rfq", args...)
			cmd.Env = append(cmd.Env, "RFQ_REDIS_HOST=127.0.0.1", "RFQ_REDIS_PORT="+portOf(t, addr))
			return cmd
		}
		c := rfq{dial(t, addr), "real"}
		output(t, run("publish", "real", "T32UNE"))
		output(t, run("publish", "real", "T33UVU"))

		crashing := run("consume", "real", "crash")
		out, err := crashing.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := crashing.Start(); err != nil {
			t.Fatal(err)
		}
		claimed, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || claimed != "T32UNE\n" {
			t.Errorf("the first message is %q, %v; want T32UNE", claimed, err)
		}
		c.info(1, 1)
		_ = crashing.Process.Kill()
		_ = crashing.Wait()

		if got := output(t, run("consume", "real", "commit")); got != "T33UVU\n" {
			t.Errorf("the second message is %q, want T33UVU", got)
		}
		if ids := harvesters["until there is none"](c); len(ids) != 1 {
			t.Errorf("harvested %q, want one message", ids)
		}
		if got := output(t, run("consume", "real", "commit")); got != "T32UNE\n" {
			t.Errorf("the harvested message is %q, want T32UNE", got)
		}
		c.do(emptyArray, "KEYS", "*")
	})
}
