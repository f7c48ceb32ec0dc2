package resp

import (
	"strings"
	"testing"
)

func TestCommandsSayThatDamagedPacketsAreNotThere(t *testing.T) {
	for command, want := range map[string]string{
		"LPOP l": "$-1", "LMPOP 1 l LEFT": "*-1", "BLPOP l 0.01": "*-1", "BLMPOP 0.01 1 l RIGHT": "*-1", "LMOVE l m LEFT LEFT": "$-1",
		"LRANGE l 0 -1": "[]", "LINDEX l 0": "$-1", "QPOP l": "[]", "QCLAIM l": "[]", "QPEEK l": "[]", "QSTAT l": "$-1",
	} {
		t.Run(command, func(t *testing.T) {
			d := newOther(t)
			d.dial().do("RPUSH", "l", "a", "b")
			d.restart()
			d.disk.rotten = true
			got := d.dial().do(strings.Fields(command)...)
			if n := len(got.elements); command == "QSTAT l" {
				got = got.elements[n-1] // the age
			}
			if got.String() != want {
				t.Errorf("it gave %s, want %s", got, want)
			}
		})
	}
}

func TestInfoCountsThePacketsThatWereSetAside(t *testing.T) {
	d := newOther(t)
	d.dial().do("RPUSH", "l", "a", "b")
	d.restart()
	d.disk.rotten = true
	c := d.dial()
	c.do("LPOP", "l")
	c.do("DEL", "l")
	if got := c.do("INFO", "persistence").text; !strings.Contains(got, "damaged_packets:2\r\n") {
		t.Errorf("INFO has\n%s", got)
	}
}
