package page_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

func TestACommandRepliesInJSON(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	b.redis("QPUSH", "jobs", "<script>\n\x01\u2028", "TAG", "a", "b")
	b.redis("QPUSH", "binary", "\xff\x00")
	b.redis("QPUSH", "tagged", "x", "TAG", "base64", "eHg=")
	for command, want := range map[string]string{
		`["QLEN","jobs"]`:                    `{"reply":1}`,
		`["qlen","none"]`:                    `{"reply":0}`,
		`["TYPE","none"]`:                    `{"reply":"none"}`,
		`["QPEEK","none"]`:                   `{"reply":[]}`,
		`["QSTAT","none"]`:                   `{"error":"NOQUEUE `,
		`["QPEEK","jobs"]`:                   `{"reply":[{"id":"1","queue":"jobs","payload":"<script>\n\u0001\u2028","priority":128,"tags":{"a":"b"},`,
		`["QLEN"]`:                           `{"error":"ERR wrong number of arguments`,
		`["QSHOW","jobs","9"]`:               `{"reply":null}`,
		`["QLEN",{"base64":"am9icw=="}]`:     `{"reply":1}`,
		`["QPEEK","binary","COUNT","1"]`:     `{"reply":[{"id":"2","queue":"binary","payload":{"base64":"/wA="},`,
		`["QPEEK","tagged"]`:                 `{"reply":[{"id":"3","queue":"tagged","payload":"x","priority":128,"tags":[["base64","eHg="]],`,
		`["CONFIG","GET","maxmemory"]`:       `{"reply":{"maxmemory":"0"}}`,
		`["QPURGE","jobs","DRYRUN"]`:         `{"reply":1}`,
		`["QGET","jobs"]`:                    `{"reply":{`,
		`["QSET","jobs","pause-out","true"]`: `{"reply":`,
		`["QDEL","jobs","1","x"]`:            `{"error":"ERR `,
		`["QSTAT","jobs"],"database":3`:      `{"error":"NOQUEUE `,
		`["QSTAT","jobs"],"database":16`:     `{"error":"ERR DB index`,
	} {
		_, text := b.text("POST", "/page/command", `{"command":`+command+`}`)
		if !strings.HasPrefix(text, want) || !json.Valid([]byte(text)) {
			t.Errorf("%s: %s, want %s", command, text, want)
		}
	}
}

func TestLongTextsAreCutForThoseWhoAsk(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	text := strings.Repeat("a", 20)
	b.redis("QPUSH", "text", text+"é")
	b.redis("QPUSH", "binary", "\xff"+text)
	for range 10 {
		b.redis("QPUSH", "large", strings.Repeat("x", 1<<20-100))
	}
	for request, want := range map[string]string{
		`["QPEEK","text"],"cut":20`:   `"payload":{"cut":"` + text + `","bytes":22}`,
		`["QPEEK","text"],"cut":21`:   `"payload":{"cut":"` + text + `","bytes":22}`,
		`["QPEEK","text"],"cut":22`:   `"payload":"` + text + `é"`,
		`["QPEEK","text"],"cut":0`:    `"payload":"` + text + `é"`,
		`["QPEEK","binary"],"cut":15`: `"payload":{"cut":{"base64":"/2FhYWFhYWFhYWFhYWFh"},"bytes":21}`,
		`["QPEEK","large"],"cut":20`:  `"payload":{"cut":"xxxxxxxxxxxxxxxxxxxx","bytes":1048476}`,
	} {
		if _, text := b.text("POST", "/page/command", `{"command":`+request+`}`); !strings.Contains(text, want) || !json.Valid([]byte(text)) {
			t.Errorf("%s: %.1000s, want %s", request, text, want)
		}
	}
}

func TestNamesOfAllBytesGoBothWays(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	for c := range 256 {
		name := "q" + string([]byte{byte(c)})
		b.redis("QPUSH", name, "x")
		_, text := b.text("POST", "/page/command", fmt.Sprintf(`{"command":["QPEEK",{"base64":%q}]}`, base64.StdEncoding.EncodeToString([]byte(name))))
		var got struct {
			Reply []struct{ Queue json.RawMessage }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Reply) != 1 {
			t.Fatalf("%q: %s, %v", name, text, err)
		}
		queue := got.Reply[0].Queue
		_, text = b.text("POST", "/page/command", fmt.Sprintf(`{"command":["QLEN",%s]}`, queue))
		if text != `{"reply":1}` || c < 128 != (queue[0] == '"') {
			t.Errorf("%q: %s as %s", name, text, queue)
		}
	}
}

func TestCommandsThatThePageDoesNotGiveAreRefused(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	for command, want := range map[string]int{
		`["FLUSHALL"]`:                       403,
		`["SUBSCRIBE","x"]`:                  403,
		`["BLPOP","x","0"]`:                  403,
		`["QPUSH","x","y"]`:                  403,
		`["CONFIG","SET","x","y"]`:           403,
		`["CONFIG"]`:                         403,
		`["CLIENT|LIST"]`:                    400,
		`["HELLO","3","AUTH","x","y"]`:       403,
		`["CLIENT","KILL","ID","1"]`:         403,
		`["MULTI"]`:                          403,
		`["SELECT","1"]`:                     403,
		`[]`:                                 403,
		`[""]`:                               403,
		`null`:                               403,
		`["QLEN",1]`:                         400,
		`["QLEN",null]`:                      400,
		`["QLEN",{}]`:                        400,
		`["QLEN",{"base64":"%"}]`:            400,
		`["QLEN",{"base64":"","x":1}]`:       400,
		`["QLEN","\ud800"]`:                  400,
		`"QLEN"`:                             400,
		`["QLEN","` + "\xff" + `"]`:          400,
		`["QLEN\r\nFLUSHALL","x"]`:           403,
		`["QLEN","x\r\n*1\r\n$8\r\nQUEUES"]`: 200,
	} {
		code, text := b.text("POST", "/page/command", `{"command":`+command+`}`)
		if code != want || !json.Valid([]byte(text)) {
			t.Errorf("%q: %d %s, want %d", command, code, text, want)
		}
	}
	if code, _ := b.text("POST", "/page/command", `{"command":["QLEN","`+strings.Repeat("x", 1<<20)+`"]}`); code != 413 {
		t.Errorf("a large body: %d", code)
	}
}

func TestAUserMayGiveTheCommandsThatItsRightsAllow(t *testing.T) {
	s := newSite(t, root(), user("ann", access.Grant{Glob: "a*", Rights: access.Look}), user("bob", access.Grant{Glob: "*", Rights: access.Manage})).serve()
	s.redis("QPUSH", "apples", "x")
	s.redis("QPUSH", "pears", "x")
	ann, bob := s.browse(), s.browse()
	ann.login("ann")
	bob.login("bob")
	for _, c := range []struct {
		b       *client
		command string
		want    int
	}{
		{ann, "QSTAT apples", 200}, {ann, "QSTAT pears", 403}, {ann, "QPURGE apples", 403}, {ann, "QUEUES", 200}, {ann, "QUEUES MATCH a*", 200},
		{bob, "QPURGE apples", 200}, {bob, "QMOVE pears TO apples 1", 403},
	} {
		if code, text := c.b.command(strings.Fields(c.command)...); code != c.want {
			t.Errorf("%s: %d %s, want %d", c.command, code, text, c.want)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "msg=audit protocol=redis user=bob remote=127.0.0.1:") {
		t.Errorf("the audit does not have who purged, from where: %s", log)
	}
}

func TestAReplyThatIsTooLargeSaysSo(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	for range 10 {
		b.redis("QPUSH", "large", strings.Repeat("x", 1<<20-100))
	}
	if code, text := b.command("QPEEK", "large"); code != 400 || !strings.Contains(text, "8 MiB") {
		t.Errorf("%d %.100s, %d bytes", code, text, len(text))
	}
	if code, text := b.command("QPEEK", "large", "COUNT", "5"); code != 200 || len(text) < 5<<19 {
		t.Errorf("%d %.100s, %d bytes", code, text, len(text))
	}
}

func TestACommandForADatabaseThatDoesNotExistDoesNothing(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	b.redis("QPUSH", "jobs", "x")
	for _, database := range []string{"99", "-1", "16", "1099511627776"} {
		if code, text := b.text("POST", "/page/command", `{"database":`+database+`,"command":["QDROP","jobs"]}`); code != 400 || !strings.Contains(text, "ERR ") {
			t.Errorf("database %s: %d %s", database, code, text)
		}
		if _, text := b.command("QLEN", "jobs"); text != `{"reply":1}` {
			t.Errorf("after a drop in database %s: %s", database, text)
		}
	}
}
