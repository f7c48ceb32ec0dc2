package ask

import (
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestPacketsAreCountedByTheirLastErrorTheMostFirst(t *testing.T) {
	for json, want := range map[bool]string{
		false: "PACKETS  LAST ERROR  SUCH AS\n3        timeout     2\n1        -           1\n1        ValueError  4\n",
		true:  `{"packets":3,"last_error_class":"timeout","id":"2"}` + "\n" + `{"packets":1,"id":"1"}` + "\n" + `{"packets":1,"last_error_class":"ValueError","id":"4"}` + "\n",
	} {
		var out strings.Builder
		c := &errorCounts{w: &out, json: json, all: make(map[string]*errorCount)}
		for _, p := range []*client.Packet{{ID: "1"}, {ID: "2", ErrorClass: "timeout"}, {ID: "3", ErrorClass: "timeout"}, {ID: "4", ErrorClass: "ValueError"}, {ID: "5", ErrorClass: "timeout"}} {
			if err := c.print(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.end(); err != nil || out.String() != want {
			t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
		}
	}
}
