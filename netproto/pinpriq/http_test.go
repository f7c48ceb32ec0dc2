package pinpriq_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// attack is an HTTP request whose body pushes to queue q if the request is read as pinpriq. Before
// the push, the body completes the frame that the request line and the header begin.
func attack(t *testing.T, line string) []byte {
	t.Helper()
	all := []byte(line + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for at := 0; at < len(all); {
		var r pinpriq.Request
		n, err := r.Parse(all[at:])
		if errors.Is(err, pinpriq.ErrShort) {
			all = append(all, 0)
			continue
		}
		if err != nil {
			break
		}
		at += n
	}
	return append(all, frames(t, pinpriq.Request{Op: pinpriq.OpPush, Queue: []byte("q"), Priority: 1})...)
}

// longMethod is a method that holds whole requests of pinpriq: a pop and a push, of queues with
// long names.
var longMethod = "P!!" + strings.Repeat("x", 0x2121) + "p!!!!!!!!!" + strings.Repeat("y", 3*0x2121)

func TestABrowserCannotDriveTheServer(t *testing.T) {
	addr, log := serve(t, nil)
	for what, line := range map[string]string{
		"POST":                    "POST /",
		"PUT":                     "PUT /",
		"PATCH":                   "PATCH /x",
		"PROPFIND":                "PROPFIND /",
		"the preface of HTTP/2":   "PRI *",
		"GET":                     "GET /",
		"OPTIONS of a server":     "OPTIONS *",
		"a push's byte":           "push /",
		"a subscribe's byte":      "sub! /",
		"an unsubscribe's byte":   "u'~ /",
		"all readies":             "AAAAAA /",
		"readies before a pop":    "AAAPUT /",
		"requests in the method":  longMethod + "PUT /",
		"a proxy's address":       "PUT http://localhost/",
		"one in upper-case":       "PUT HTTP://localhost/",
		"one that is encrypted":   "PATCH https://localhost/",
		"a method of one letter":  "P /",
		"a method of two letters": "PU *",
	} {
		t.Run(what, func(t *testing.T) {
			all := attack(t, line)
			whole, apart := dial(t, addr), dial(t, addr)
			if _, err := whole.Write(all); err != nil {
				t.Fatal(err)
			}
			cut := max(0, len(line)-30)
			_, _ = apart.Write(all[:cut])
			for i := range all[cut:len(line)] { // the connection may be closed after that
				_, _ = apart.Write(all[cut+i : cut+i+1])
			}
			for _, conn := range []io.Reader{whole, apart} { // a pop within the method is answered 00 00
				if got, err := io.ReadAll(conn); strings.Trim(string(got), "\x00") != "" || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %q (%v), want the end and nothing before", got, err)
				}
			}
		})
	}
	if !log.has("begins like an HTTP request") {
		t.Error("the log does not say why the connections were closed")
	}
	client := pinpriq.NewClient(dial(t, addr))
	if got, err := client.Pop(t.Context(), "q"); len(got) > 0 || err != nil {
		t.Errorf("then queue q has %v (%v), want that nothing was pushed", got, err)
	}
}

// popBeginning is a pop that begins with the bytes of head, which hold the length of its name, and
// ends with those of tail.
func popBeginning(t *testing.T, head, tail string) []byte {
	t.Helper()
	name := bytes.Repeat([]byte{'x'}, int(head[1])<<8|int(head[2]))
	copy(name, head[3:])
	copy(name[len(name)-len(tail):], tail)
	frame := frames(t, pinpriq.Request{Op: pinpriq.OpPop, Queue: name})
	if !strings.HasPrefix(string(frame), head) {
		t.Fatalf("the frame begins with %q, want %q", frame[:len(head)], head)
	}
	return frame
}

func wantEmptyReply(t *testing.T, conn io.Reader) {
	t.Helper()
	reply := make([]byte, 2)
	if _, err := io.ReadFull(conn, reply); err != nil || string(reply) != "\x00\x00" {
		t.Fatalf("a pop was answered % x (%v), want that there is nothing", reply, err)
	}
}

func TestARequestThatIsNoRequestLineIsCarriedOutWhenItIsComplete(t *testing.T) {
	addr, _ := serve(t, nil)
	for what, frame := range map[string][]byte{
		"a pop of a short name":         frames(t, pinpriq.Request{Op: pinpriq.OpPop, Queue: []byte("UT /")}),
		"readies before it":             append([]byte("AAAAA"), frames(t, pinpriq.Request{Op: pinpriq.OpPop})...),
		"a name of a token":             popBeginning(t, "PUT", ""),
		"a token and a word":            popBeginning(t, "PUT hello", ""),
		"no token":                      popBeginning(t, "PUT\t/", ""),
		"a token and a target at last":  popBeginning(t, "PUT\x00", " /"),
		"a token and a space":           popBeginning(t, "PUT", " "),
		"a token and half of a proxy's": popBeginning(t, "PUT", " htt"),
	} {
		t.Run(what, func(t *testing.T) {
			whole, apart := dial(t, addr), dial(t, addr)
			if _, err := whole.Write(frame); err != nil {
				t.Fatal(err)
			}
			wantEmptyReply(t, whole)
			for _, cut := range [][]byte{frame[:1], frame[1:2], frame[2 : len(frame)-1], frame[len(frame)-1:]} {
				if _, err := apart.Write(cut); err != nil {
					t.Fatal(err)
				}
			}
			wantEmptyReply(t, apart)
			if _, err := apart.Write(frames(t, pinpriq.Request{Op: pinpriq.OpPop})); err != nil { // the guard is over
				t.Fatal(err)
			}
			wantEmptyReply(t, apart)
		})
	}
}

func TestAQueueWhoseNameLooksLikeHTTPCanBeUsedLater(t *testing.T) {
	addr, _ := serve(t, nil)
	pop := popBeginning(t, "POST /", "")
	var r pinpriq.Request
	if _, err := r.Parse(pop); err != nil {
		t.Fatal(err)
	}
	for what, first := range map[string][]byte{
		"in the same segment": append(frames(t, pinpriq.Request{Op: pinpriq.OpUnsubscribe, Queue: r.Queue[:20]}), pop...),
		"after a reply":       frames(t, pinpriq.Request{Op: pinpriq.OpPop}),
	} {
		t.Run(what, func(t *testing.T) {
			conn := dial(t, addr)
			for _, send := range [][]byte{first, pop} {
				if _, err := conn.Write(send); err != nil {
					t.Fatal(err)
				}
				wantEmptyReply(t, conn)
			}
		})
	}
}
