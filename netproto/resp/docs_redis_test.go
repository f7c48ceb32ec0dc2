package resp

import (
	"maps"
	"net"
	process "os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pairs returns the values of a map by its keys, in RESP2 and RESP3.
func (r reply) pairs() map[string]reply {
	all := make(map[string]reply)
	for i := 0; i < len(r.elements); i += 2 {
		all[r.elements[i].text] = r.elements[i+1]
	}
	return all
}

// shape is what clients go by in the arguments of COMMAND DOCS: all but names and texts.
func shape(arguments reply) string {
	all := []string{string(arguments.kind)}
	for _, a := range arguments.elements {
		p := a.pairs()
		text := string(a.kind) + p["type"].text
		if token, ok := p["token"]; ok {
			text += " " + token.text
		}
		if flags, ok := p["flags"]; ok {
			text += " " + flags.String()
		}
		if parts, ok := p["arguments"]; ok {
			text += " " + shape(parts)
		}
		all = append(all, "("+text+")")
	}
	return strings.Join(all, " ")
}

// shapes are those of all commands in the reply of COMMAND DOCS.
func (r reply) shapes() map[string]string {
	all := make(map[string]string)
	for name, d := range r.pairs() {
		of := d.pairs()
		all[name] = shape(of["arguments"])
		maps.Copy(all, of["subcommands"].shapes())
	}
	return all
}

// otherShape are the commands whose arguments COMMANDS.md tells otherwise than Redis 7.0 does.
var otherShape = []string{
	"client|kill", "client|list", // each TYPE is one word in Redis
	"command|getkeys",          // without arguments in Redis, which 7.2 mends
	"command|list",             // FILTERBY is said once
	"config|get", "psubscribe", // a block of one in Redis
	"hello",  // any number in Redis
	"object", // a container in Redis
}

func TestSystemArgumentsHaveTheShapeOfThoseOfRedis(t *testing.T) {
	ours, theirs := newOther(t).dial(), newOriginal(t).dial()
	for _, version := range []string{"2", "3"} {
		ours.do("HELLO", version)
		theirs.do("HELLO", version)
		redis := theirs.do("COMMAND", "DOCS").shapes()
		compared := 0
		for name, got := range ours.do("COMMAND", "DOCS").shapes() {
			want, ok := redis[name]
			switch {
			case !ok || slices.Contains(otherShape, name):
			case got != want:
				t.Errorf("%s has the arguments %s, in Redis %s", name, got, want)
			default:
				compared++
			}
		}
		if compared < 100 {
			t.Errorf("%d commands are as in Redis", compared)
		}
	}
}

// places are the arity of each command in the reply of COMMAND, and where its keys are.
func (r reply) places() map[string]string {
	all := make(map[string]string)
	for _, c := range r.elements {
		e := c.elements
		all[e[0].text] = strings.Join([]string{e[1].text, e[3].text, e[4].text, e[5].text}, " ")
		maps.Copy(all, e[9].places())
	}
	return all
}

func TestSystemArityAndPlacesOfKeysAreThoseOfRedis(t *testing.T) {
	redis := newOriginal(t).dial().do("COMMAND").places()
	compared := 0
	for name, got := range newOther(t).dial().do("COMMAND").places() {
		switch want, ok := redis[name]; {
		case !ok || name == "object": // a container in Redis
		case got != want:
			t.Errorf("%s has arity, first, last and step %s, in Redis %s", name, got, want)
		default:
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("%d commands are as in Redis", compared)
	}
}

// asksForDocs matches what redis-cli of 7.0 or later says of its version.
var asksForDocs = regexp.MustCompile(`^redis-cli ([7-9]|\d\d)`)

func TestSystemTheOriginalClientShowsTheSyntax(t *testing.T) {
	path, err := process.LookPath("redis-cli")
	if err != nil {
		t.Skip("redis-cli is not installed: apt install redis-tools")
	}
	if version, err := process.Command(path, "--version").Output(); err != nil || !asksForDocs.Match(version) {
		t.Skipf("redis-cli before 7.0 does not ask for COMMAND DOCS: %s, %v", version, err)
	}
	_, port, _ := net.SplitHostPort(listen(t, startLoop(t), New(Config{})))
	for command, want := range map[string]string{
		"QPUSH":       "queue payload [PRIO n] [KEY k] [TTL ms] [DELAY ms|AT unix-ms] [TAG name value [TAG name value ...]] [PRODUCER name] [LEASE ms] [META bytes] [UNIQUE id [WINDOW ms|UNTIL claim|end] [REPLACE] [TELL]] [BLOCK ms]",
		"QACK":        "queue id token [id token ...] [COST n]",
		"SET":         "name value [NX|XX] [GET] [EX s|PX ms|EXAT unix-seconds|PXAT unix-ms|KEEPTTL]",
		"CLIENT INFO": "",
		"MEMORY":      "",
	} {
		out, err := process.Command(path, append([]string{"-p", port, "help"}, strings.Fields(command)...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(regexp.MustCompile(`\x1b\[\d*m|\r`).ReplaceAllString(string(out), "")), "\n")
		if got := strings.TrimSpace(lines[0]); got != strings.TrimSpace(command+" "+want) {
			t.Errorf("redis-cli shows %q, want %q", got, want)
		}
	}
}
