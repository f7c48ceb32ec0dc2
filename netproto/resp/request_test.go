package resp

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

func TestProtocolErrorsEndTheConnection(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	c.send("PING\r\n*1\r\nfoo\r\nPING\r\n")
	c.want("+PONG\r\n-ERR Protocol error: expected '$', got 'f'\r\n")
	c.wantEnd()
	for _, text := range map[string]string{
		"a request line":  "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nPING\r\n",
		"a POST":          "POST / HTTP/9\r\nPING\r\n",
		"the host's name": "Host: 127.0.0.1:6379\r\nPING\r\n",
		"as an array":     request("post") + "PING\r\n",
	} {
		c := d.dial()
		c.send(text)
		c.wantEnd()
	}
}

func TestABinaryByteInPlaceOfARequestIsAProtocolError(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	c.send("\x16\x03\x01")
	if got := c.readLine(); !strings.HasPrefix(got, "-ERR Protocol error: the first byte begins no request") {
		t.Errorf("got %q", got)
	}
	c.wantEnd()
}

func TestALargeRequestArrivesInPieces(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	text := strings.Repeat("x", wire.MaxArg)
	c.send(request("ECHO", text) + request("PING"))
	c.want("$1048576\r\n" + text + "\r\n+PONG\r\n")
}

func TestARequestBeyondALimitIsRefusedAndTheConnectionGoesOn(t *testing.T) {
	d := newDoor(t, Config{})
	c := d.dial()
	large := strings.Repeat("x", 3<<20)
	const refusal = "-ERR too large: an argument has 3145728 bytes, the limit is 1048576\r\n"
	c.send(request("SET", "k", large) + request("SET", "k", "v") + request("GET", "k"))
	c.want(refusal + "+OK\r\n$1\r\nv\r\n")
	c.ask("MULTI", "+OK\r\n")
	c.send(request("SET", "k", large) + request("EXEC"))
	c.want(refusal + "-EXECABORT Transaction discarded because of previous errors.\r\n")
	c.send(request("LPUSH", "l", large[:1<<20], large[:1<<20], large[:1<<20], large[:1<<20]) + request("GET", "k"))
	c.want("-ERR the request is longer than 4194304 bytes: send it in pieces\r\n$1\r\nv\r\n")
	c.ask("CLIENT REPLY OFF", "")
	c.send(request("SET", "k", large) + request("CLIENT", "REPLY", "ON"))
	c.want("+OK\r\n")
}

func TestACommandThatIsMissingSaysWhatIsThereInstead(t *testing.T) {
	c := newDoor(t, Config{}).dial()
	for words, want := range map[string]string{
		"EVAL x 0":                       "no scripts",
		"EVALSHA x 0":                    "no scripts",
		"script load x":                  "no scripts",
		"FCALL_RO f 0":                   "no scripts",
		"SADD s a":                       "no sets:",
		"sinterstore a b c":              "no sets:",
		"ZADD z 1 a":                     "no sorted sets",
		"BZPOPMIN z 0":                   "no sorted sets",
		"XADD s * a b":                   "no streams",
		"xreadgroup group g c streams s": "no streams",
		"COPY a b":                       "RENAME",
		"HRANDFIELD h 1":                 "HSCAN",
		"randomkey":                      "SCAN",
		"FUNCTION LIST":                  "no scripts",
		"ACL GETUSER u":                  "ACL LIST",
		"client no-evict on":             "evicts nothing",
		"CLIENT NO-TOUCH on":             "evicts nothing",
		"CLIENT TRACKING on OPTIN":       "DisableCache",
		"CONFIG SET hz 10":               "config file",
		"MONITOR":                        "holdfast tail",
		"SLOWLOG GET":                    "/metrics",
		"SAVE":                           "holdfast backup",
		"BGSAVE SCHEDULE":                "holdfast backup",
		"SHUTDOWN NOSAVE":                "SIGTERM",
		"DEBUG SLEEP 1":                  "QSHOW",
		"CLUSTER INFO":                   "one server",
		"REPLICAOF a 1":                  "one server",
	} {
		all := strings.Fields(words)
		missing := "command '" + all[0]
		if newTable()[strings.ToLower(all[0])] != nil {
			missing = "subcommand '" + all[1]
		}
		got := c.line(all...)
		if !strings.HasPrefix(got, "-ERR unknown "+missing+"': Holdfast ") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", words, got)
		}
	}
	c.ask("NONSENSE", "-ERR unknown command 'NONSENSE', with args beginning with: \r\n")
}

func TestARequestThatGoesOnIsCutAnewOnlyWhereItHasMoved(t *testing.T) {
	p := New(Config{})
	s, other := &session{protocol: p}, &session{protocol: p}
	buf := []byte(request(slices.Repeat([]string{"name"}, 2*maxKeptArgs)...))
	args, n, err := s.next(buf)
	if err != nil || n != len(buf) {
		t.Fatal(n, err)
	}
	for _, row := range []struct {
		session *session
		buf     []byte
		anew    bool
	}{{s, buf, false}, {s, bytes.Clone(buf), true}, {other, buf, true}} {
		p.long = longRequest{s, buf, args}
		s.parser.Reset()
		got, size, err := row.session.next(row.buf)
		if err != nil || size != n || len(got) != len(args) || string(got[5]) != "name" || (&got[0] != &args[0]) != row.anew {
			t.Errorf("%+v: %d arguments of %d bytes, %v", row.session, len(got), size, err)
		}
	}
}

func TestARequestThatIsNotCompleteLeavesNothingBehind(t *testing.T) {
	p := New(Config{})
	s := &session{protocol: p}
	p.args = make([][]byte, 0, maxKeptArgs)
	buf := []byte(request("MSET", "a", "b"))
	if _, n, err := s.next(buf[:len(buf)-1]); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	for i, a := range p.args[:maxKeptArgs] {
		if a != nil {
			t.Errorf("argument %d keeps the read buffer", i)
		}
	}
}
