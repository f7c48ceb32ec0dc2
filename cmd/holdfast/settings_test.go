package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSettingsAreSetAndPrinted(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "enum.class=low,very high", "lease=1h", "enum.node=a", "bound-bytes=64MiB", "retain=1500ms", "bound=7", "backoff-min=250ms", "dead-letter=7")
	table := s.must(t, "get", "q")
	for _, want := range []string{
		"lease               1h\n", "bound-bytes         64MiB\n", "retain              1.5s\n", "bound               7\n",
		"backoff-min         250ms\n", "backoff-max         10m\n", "dead-letter         7\n", "enum.class          low,very high\n", "enum.node           a\n",
	} {
		field(t, table, want)
	}
	object := s.must(t, "get", "q", "--json")
	for _, want := range []string{`"lease":3600000,`, `"bound_bytes":67108864,`, `"dead_letter":"7"`, `"full":"reject"`, `"enum":{"class":["low","very high"],"node":["a"]}}`} {
		field(t, object, want)
	}
	s.must(t, "set", "bytes", "enum.a=b", "enum.\xff=\xfe,c", "dead-letter=\xfd")
	if got, want := s.must(t, "get", "bytes", "--json"), `"enum":[["a","b"],[{"base64":"/w=="},{"base64":"/g=="},"c"]]`; !strings.Contains(got, want) || !strings.Contains(got, `"dead_letter":{"base64":"/Q=="}`) {
		t.Errorf("bytes are shown as %s, want %s in it", got, want)
	}
	s.must(t, "set", "q", "enum.class=", "full=drop")
	if got := columns("\n"+s.must(t, "get", "q"), 0); slices.Contains(got, "enum.class") || !slices.Contains(got, "enum.node") {
		t.Errorf("settings are %q, want enum.node and not enum.class", got)
	}
	oneErrorLine(t, s.run(t, "get", "none"), exitNothing, "no queue has this name")
	oneErrorLine(t, s.run(t, "set", "q", "max_attempts=3"), exitUsage, `on-dead: did you mean "max-attempts"?`)
	oneErrorLine(t, s.run(t, "set", "q", "lease=1s", "full=maybe"), exitUsage, `full: expected`)
	oneErrorLine(t, s.run(t, "set", "q", "backoff-min=2h", "backoff-max=1h"), exitUsage, `backoff-min: expected at most backoff-max`)
	oneErrorLine(t, s.run(t, "set", "q", "colour=red"), exitUsage, `unknown setting "colour": expected one of`)
	oneErrorLine(t, s.run(t, "set", "q", "enum=low,high"), exitUsage, "enum.class")
	oneErrorLine(t, s.run(t, "set", "q", "closed=yes"), exitUsage, `"holdfast close"`)
}

func TestASwitchIsSetInAnyWord(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for word, want := range map[string]string{"yes": "yes", "on": "yes", "true": "yes", "1": "yes", "ON": "yes", "no": "no", "off": "no", "false": "no", "0": "no"} {
		if got := s.must(t, "set", "q", "pause-in="+word); got != "pause-in  "+want+"\n" {
			t.Errorf("pause-in=%s printed %q, want %s", word, got, want)
		}
	}
	oneErrorLine(t, s.run(t, "set", "q", "pause-in=maybe"), exitUsage, "pause-in")
}
