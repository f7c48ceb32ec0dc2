package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oneErrorLine checks that a run failed with an exit code and one line that says why.
func oneErrorLine(t *testing.T, r result, code int, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	last := lines[len(lines)-1] // after what a server may have logged
	if r.code != code || !strings.HasPrefix(last, "holdfast: ") || !strings.Contains(last, want) || r.stdout != "" {
		t.Errorf("exit code %d, stderr %q, stdout %q; want exit code %d and an error with %q", r.code, r.stderr, r.stdout, code, want)
	}
	if strings.Count(r.stderr, "holdfast: ") != 1 || strings.Contains(r.stderr, "goroutine") {
		t.Errorf("stderr %q, want one line", r.stderr)
	}
}

func TestWrongUsageIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"no command":                {nil, nil, "see holdfast --help"},
		"version of something":      {[]string{"--version", "pop"}, nil, "unexpected argument pop; see holdfast version --help"},
		"no folder's name":          {[]string{"serve", "--data", ""}, nil, "--data: the name is empty"},
		"unknown command":           {[]string{"nope"}, nil, `there is no command "nope"; see holdfast --help`},
		"command with a letter off": {[]string{"pus", "jobs"}, nil, `there is no command "pus": did you mean "push"?; see`},
		"beginning of a command":    {[]string{"sub", "q"}, nil, `did you mean "subscribe"?`},
		"command of others":         {[]string{"requeue", "q"}, nil, `there is no command "requeue": "redrive" does that here`},
		"command to stop":           {[]string{"stop"}, nil, "the signal TERM ends a server"},
		"unknown command of one":    {[]string{"config", "chek"}, nil, `unexpected argument chek, did you mean "check"?; see holdfast config --help`},
		"delay that is a flag":      {[]string{"push", "q", "x", "--delay", "-5s"}, nil, `--delay: expected a value, got "-5s": one that begins with - is written as --delay=-5s; see`},
		"flag without its value":    {[]string{"push", "q", "x", "--delay"}, nil, "--delay: expected a value, got the end of the line; see holdfast push --help"},
		"state with a letter off":   {[]string{"list", "q", "--state", "ded"}, nil, `--state must be one of "ready","delayed","claimed","dead","done","damaged" but got "ded"`},
		"setting of a default":      {[]string{"unset", "q", "max_attempts"}, nil, `alert-age: did you mean "max-attempts"?`},
		"unknown flag":              {[]string{"pop", "q", "--nope"}, nil, "see holdfast pop --help"},
		"no queue":                  {[]string{"push"}, nil, "<queue>"},
		"an argument too many":      {[]string{"pop", "q", "r"}, nil, "unexpected argument r"},
		"priority of 33 bits":       {[]string{"push", "q", "x", "--priority", "4294967296"}, nil, "--priority"},
		"priority 0 of no group":    {[]string{"push", "q", "x", "--priority", "0"}, nil, "expected --key"},
		"TTL over ten years":        {[]string{"push", "q", "x", "--ttl", "87601h"}, nil, `--ttl: expected 0s to 3650d, got "87601h"`},
		"negative TTL":              {[]string{"push", "q", "x", "--ttl=-1s"}, nil, "--ttl"},
		"TTL without a unit":        {[]string{"push", "q", "x", "--ttl", "5"}, nil, `--ttl: "5" has no unit: write 5ms, 5s, 5m, 5h, 5d or 5w`},
		"lease without a unit":      {[]string{"extend", "q", "1", "1", "30"}, nil, `"30" has no unit: write 30ms, 30s`},
		"drain without a unit":      {[]string{"serve", "--drain", "8"}, nil, `--drain: "8" has no unit`},
		"cache without a unit":      {[]string{"serve", "--cache", "65536"}, nil, `"65536" has no unit: write 65536B, 65536KiB, 65536MiB or 65536GiB`},
		"setting without a unit":    {[]string{"set", "q", "lease=30"}, nil, `lease: "30" has no unit: write 30ms, 30s`},
		"bytes without a unit":      {[]string{"set", "q", "bound-bytes=64"}, nil, `bound-bytes: "64" has no unit: write 64B`},
		"setting over ten years":    {[]string{"set", "q", "retain=522w"}, nil, `retain: expected 0s to 3650d, got "522w"`},
		"negative setting":          {[]string{"set", "q", "retain=-1s"}, nil, "retain: expected 0s to 3650d"},
		"a number as a moment":      {[]string{"push", "q", "x", "--at", "1764576000000"}, nil, "--at: expected a date and a time such as 2026-12-01T08:00"},
		"a day as a moment":         {[]string{"push", "q", "x", "--at", "2026-12-01"}, nil, "2026-12-01T08:00Z"},
		"a moment that is none":     {[]string{"push", "q", "x", "--at", "2026-13-01T08:00"}, nil, "--at"},
		"a moment and a delay":      {[]string{"push", "q", "x", "--at", "2026-12-01T08:00", "--delay", "1s"}, nil, "--delay and --at: expected one of them"},
		"database of the moon":      {[]string{"pop", "q", "--db", "16"}, nil, `--db: expected a whole number from 0 to 15, got "16"`},
		"negative database":         {[]string{"pop", "q", "--db=-1"}, nil, "--db: expected a whole number from 0 to 15"},
		"priority of a word":        {[]string{"prio", "q", "1", "best"}, nil, "priority"},
		"new priority of 33 bits":   {[]string{"prio", "q", "1", "4294967296"}, nil, "<priority>: expected a whole number from 0 to 4294967295"},
		"default of no setting":     {[]string{"unset", "q", "colour"}, nil, `unknown setting "colour": expected one of max-attempts, lease`},
		"an end of the end":         {[]string{"unset", "q", "closed"}, nil, `"holdfast close"`},
		"order of no tag":           {[]string{"unset", "q", "enum"}, nil, "enum.class"},
		"no time to wait":           {[]string{"pop", "q", "--timeout", "0s"}, nil, "--timeout"},
		"negative delay":            {[]string{"push", "q", "x", "--delay=-1s"}, nil, "--delay"},
		"window of nothing":         {[]string{"push", "q", "x", "--window", "1s"}, nil, "expected --unique"},
		"tag without a value":       {[]string{"push", "q", "x", "--tag", "class"}, nil, `--tag "class": expected NAME=VALUE`},
		"filter without a value":    {[]string{"pop", "q", "--filter", "class"}, nil, `--filter "class": expected a tag`},
		"filters that are not":      {[]string{"pop", "q", "--filter", "a=b", "--match-any", "2"}, nil, "--match-any 2: expected 1 to"},
		"too many at once":          {[]string{"pop", "q", "--count", "1001"}, nil, "--count: expected a whole number from 0 to 1000"},
		"a count below nothing":     {[]string{"list", "q", "--count=-1"}, nil, "--count: expected a whole number, 0 or more"},
		"not an address":            {[]string{"pop", "q", "--redis", "here"}, nil, `--redis: expected HOST:PORT`},
		"lines and a payload":       {[]string{"push", "q", "x", "--lines"}, nil, "--lines: expected neither"},
		"lines that are unique":     {[]string{"push", "q", "--lines", "--unique", "x"}, nil, "--lines: expected neither"},
		"a group of so many":        {[]string{"pop", "q", "--group", "--count", "2"}, nil, "--count and --group can't be used together"},
		"lease of no length":        {[]string{"claim", "q", "--lease=-1s"}, nil, "--lease"},
		"a group of some":           {[]string{"claim", "q", "--group", "--count", "2"}, nil, "expected one of them"},
		"token that is none":        {[]string{"ack", "q", "1", "x"}, nil, "token"},
		"dead and later":            {[]string{"nack", "q", "1", "1", "--dead", "--delay", "1s"}, nil, "--dead"},
		"dead and no attempt":       {[]string{"nack", "q", "1", "1", "--dead", "--uncounted"}, nil, "--dead and --uncounted"},
		"an id and a filter":        {[]string{"redrive", "q", "1", "--filter", "a=b"}, nil, "<id>: expected none with --to, --filter"},
		"unknown state":             {[]string{"list", "q", "--state", "asleep"}, nil, "--state"},
		"peek at nothing":           {[]string{"peek", "q", "--count", "0"}, nil, "--count: expected a whole number from 1 to 1000"},
		"show in two forms":         {[]string{"show", "q", "1", "--raw", "--json"}, nil, "--raw"},
		"ids and a count":           {[]string{"move", "q", "r", "1", "--count", "2"}, nil, "<id>: expected none"},
		"claims of a move":          {[]string{"move", "q", "r", "--state", "claimed"}, nil, "--state"},
		"claims of the future":      {[]string{"harvest", "q", "--older=-1s"}, nil, "--older"},
		"setting without a value":   {[]string{"set", "q", "lease"}, nil, `"lease": expected NAME=VALUE`},
		"lease that is no time":     {[]string{"set", "q", "lease=soon"}, nil, "lease: expected a time such as 30s"},
		"bound that is no size":     {[]string{"set", "q", "bound-bytes=lots"}, nil, "64MiB"},
		"no settings":               {[]string{"set", "q"}, nil, "<name=value>"},
		"not a pinpriq address":     {[]string{"bench", "push", "--pinpriq", "here"}, nil, `--pinpriq: expected HOST:PORT`},
		"negative count":            {[]string{"subscribe", "q", "--count=-1"}, nil, "--count"},
		"raw and JSON":              {[]string{"pop", "q", "--raw", "--json"}, nil, "--raw"},
		"unknown sync mode":         {[]string{"serve", "--sync", "sometimes"}, nil, "always, interval:50ms or never"},
		"sync interval too long":    {[]string{"serve", "--sync", "interval:2m"}, nil, "1m"},
		"no size":                   {[]string{"serve", "--cache", "lots"}, nil, "64MiB"},
		"cache too small":           {[]string{"serve", "--cache", "1KiB"}, nil, "64KiB to 32GiB"},
		"no connections":            {[]string{"serve", "--max-conns", "0"}, nil, "1 to"},
		"buffers too small":         {[]string{"serve", "--max-buffers", "15MiB"}, nil, "16MiB to 1024GiB"},
		"buffers too large":         {[]string{"serve", "--max-buffers", "1025GiB"}, nil, "16MiB to 1024GiB"},
		"payload too small":         {[]string{"serve", "--max-payload", "512KiB"}, nil, "1MiB to 64MiB"},
		"payload too large":         {[]string{"serve", "--max-payload", "65MiB"}, nil, "1MiB to 64MiB"},
		"buffers for no payload":    {[]string{"serve", "--max-payload", "8MiB", "--max-buffers", "31MiB"}, nil, "which needs 32MiB or more"},
		"no drain time":             {[]string{"serve", "--drain", "0s"}, nil, "--drain"},
		"unknown log format":        {[]string{"serve", "--log", "xml"}, nil, "--log"},
		"unknown log level":         {[]string{"serve", "--log-level", "loud"}, nil, "--log-level"},
		"a password that ps shows":  {[]string{"serve", "--redis-password=a"}, nil, "unknown flag --redis-password, did you mean"},
		"certificate with no key":   {[]string{"pop", "q", "--tls-cert", "a"}, nil, "--tls-cert and --tls-key must be used together"},
		"unknown bench":             {[]string{"bench", "dance"}, nil, "dance"},
		"bench without depth":       {[]string{"bench", "--depth", "0"}, nil, "1 to 4096"},
		"bench of large payloads":   {[]string{"bench", "--size", "65536"}, nil, "16 to 65535"},
		"bench mixed alone":         {[]string{"bench", "mixed", "--connections", "1"}, nil, "mixed needs at least 2"},
		"bench of the board alone":  {[]string{"bench", "mixed", "--protocol", "barbershop", "--connections", "1"}, nil, "mixed needs at least 2"},
		"bench of too many items":   {[]string{"bench", "next", "--protocol", "barbershop", "--count", "100000001"}, nil, "--count 100000001"},
		"bench push of the board":   {[]string{"bench", "push", "--protocol", "barbershop"}, nil, "update, next or mixed"},
		"bench update of a queue":   {[]string{"bench", "update"}, nil, "--protocol barbershop"},
		"bench without items":       {[]string{"bench", "--items", "0"}, nil, "--items"},
		"bench next without end":    {[]string{"bench", "next", "--protocol", "barbershop", "--count", "0"}, nil, "more than 0"},
		"bench of unknown":          {[]string{"bench", "--protocol", "gopher"}, nil, "--protocol"},
		"bench pop without end":     {[]string{"bench", "pop", "--count", "0"}, nil, "pop needs more than 0"},
		"wrong variable":            {[]string{"serve"}, map[string]string{"HOLDFAST_MAX_CONNS": "many"}, "--max-conns"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			oneErrorLine(t, command{env: c.env}.run(ctx, c.args...), exitUsage, c.want)
		})
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	taken := serve(t, t.TempDir())
	inUse := t.TempDir()
	serve(t, inUse)
	for name, c := range map[string]struct {
		prepare func(dir string) error // makes the folder what it should not be
		args    []string               // behind --data DIR
		want    string
	}{
		"port taken":             {args: []string{"--pinpriq", taken.addr}, want: "choose another with --pinpriq"},
		"port of another taken":  {args: []string{"--admin", taken.addr}, want: "choose another with --admin"},
		"nothing to serve":       {args: []string{"--pinpriq", "off"}, want: "no protocol is served"},
		"admin open to others":   {args: []string{"--admin", "0.0.0.0:0"}, want: `--admin: "0.0.0.0:0" can be reached`},
		"address of another":     {args: []string{"--pinpriq", "192.0.2.1:0", "--insecure"}, want: "192.0.2.1"},
		"not an address":         {args: []string{"--pinpriq", "7070"}, want: "HOST:PORT"},
		"open to other machines": {args: []string{"--pinpriq", "0.0.0.0:0"}, want: "--insecure"},
		"open by an empty host":  {args: []string{"--pinpriq", ":0"}, want: "--insecure"},
		"folder in use":          {args: []string{"--data", inUse}, want: "in use"},
		"folder of a newer format": {prepare: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "format"), []byte("99\n"), 0o600)
		}, want: "newer"},
		"folder of something else": {prepare: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600)
		}, want: "letter.txt"},
		"a file instead of a folder": {prepare: func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		}, want: "data folder"},
		"folder that cannot be written": {prepare: func(dir string) error { return os.Chmod(dir, 0o500) }, want: "permission denied"},
		"folder that cannot be made":    {args: []string{"--data", "/dev/null/data"}, want: "data folder"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				if err := c.prepare(dir); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(c.want, "permission") && os.Geteuid() == 0 {
				t.Skip("the superuser may write everywhere")
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			args := append([]string{"serve", "--data", dir, "--pinpriq", "127.0.0.1:0", "--barbershop", "off", "--redis", "off", "--admin", "off"}, c.args...)
			oneErrorLine(t, command{}.run(ctx, args...), exitFailed, c.want)
		})
	}
}

func TestAClientThatCannotBeServedSaysWhy(t *testing.T) {
	s := serve(t, t.TempDir())
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := gone.Addr().String()
	_ = gone.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	tooLong, beyond := strings.Repeat("x", 65536), strings.Repeat("x", 1<<20+1)
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"push to nobody":          {args: []string{"push", "q", "x", "--redis", nobody}, want: "no server answers at"},
		"pop from nobody":         {args: []string{"pop", "q", "--redis", nobody}, want: "no server answers at"},
		"subscribe to nobody":     {args: []string{"subscribe", "q", "--redis", nobody}, want: "no server answers at"},
		"bench of nobody":         {args: []string{"bench", "--pinpriq", nobody}, want: "no server answers at"},
		"bench of nobody's board": {args: []string{"bench", "--protocol", "barbershop", "--barbershop", nobody}, want: "no server answers at"},
		"board that is none":      {args: []string{"bench", "--protocol", "barbershop", "--timeout", "50ms", "--barbershop", silent.Addr().String()}, want: "check that it speaks barbershop"},
		"a server that is mute":   {args: []string{"push", "q", "x", "--timeout", "1s", "--redis", silent.Addr().String()}, want: "did not answer within 1s"},
		"pop of another protocol": {args: []string{"pop", "q", "--redis", s.addr}, want: "check that --redis " + s.addr + " is the server's address for Redis clients"},
		"argument too long":       {args: []string{"push", "q", beyond}, want: "the limit is 1048576"},
		"standard input too long": {stdin: beyond, args: []string{"push", "q"}, want: "the limit is 1048576"},
		"name too long":           {args: []string{"push", tooLong, "x"}, want: "too large"},
		"name to hear too long":   {args: []string{"subscribe", tooLong}, want: "the name has 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			oneErrorLine(t, s.runWith(t, c.stdin, c.args...), exitFailed, c.want)
		})
	}
}

func TestAnInterruptedClientSaysSo(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the listener
		conn, err := silent.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the request is on its way
			cancel()
		}
	}()
	oneErrorLine(t, command{}.run(ctx, "pop", "q", "--redis", silent.Addr().String()), exitFailed, "interrupted")
}
