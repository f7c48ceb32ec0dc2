package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A table of PostgreSQL is a queue to many. It is as programs make it: the oldest row comes first,
// and SKIP LOCKED has workers pass over what others take. PostgreSQL has its own defaults, so a
// commit is synced, and pgbench drives it by prepared statements.
const jobTable = `CREATE TABLE job (
	id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	payload  BYTEA NOT NULL,
	due      TIMESTAMPTZ NOT NULL DEFAULT now(), -- or when a claim ends
	attempts INT NOT NULL DEFAULT 0
)`

// tableAsks are what a connection does again and again, as scripts of pgbench. Each statement is a
// transaction. In work a claim may find nothing, as another one has just taken the row: then the id
// is 0.
var tableAsks = map[string]string{
	"push": jobPush,
	"pop": `DELETE FROM job WHERE id = (SELECT id FROM job ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload;
`,
	"work": jobPush + `\set id 0
UPDATE job SET due = now() + interval '30 s', attempts = attempts + 1
WHERE id = (SELECT id FROM job WHERE due <= now() ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, payload \aset
DELETE FROM job WHERE id = :id;
`,
}

var jobPush = fmt.Sprintf("INSERT INTO job (payload) VALUES ('%s');\n", strings.Repeat("x", payloadSize))

// unprivileged is the user of PostgreSQL where the workshop runs as root, which it refuses.
const unprivileged = 65534

// table is a running PostgreSQL.
type table struct {
	programs, dir, port string
}

// openTable starts PostgreSQL on a folder of its own, with an empty table.
func (b *bench) openTable(ctx context.Context, p *peer) (*table, error) {
	binary, err := filepath.EvalSymlinks(p.binary) // the other programs are beside it
	if err != nil {
		return nil, fmt.Errorf("the programs of %s were not found: %w", p.label, err)
	}
	dir, err := os.MkdirTemp(b.dir, p.label+"-")
	if err == nil && os.Geteuid() == 0 {
		err = errors.Join(os.Chown(dir, unprivileged, unprivileged), os.Chmod(b.dir, 0o711))
	}
	if err != nil {
		return nil, fmt.Errorf("no folder for the data of %s: %w", p.label, err)
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(addr, ":")
	t := &table{filepath.Dir(binary), dir, port}
	if _, err = t.run(ctx, "initdb", "-D", dir+"/data", "-A", "trust", "-U", "postgres"); err == nil {
		_, err = t.run(ctx, "pg_ctl", "-D", dir+"/data", "-l", dir+"/log", "-w", "-o", "-h 127.0.0.1 -k '' -p "+port, "start")
	}
	if err == nil {
		err = t.sql(ctx, jobTable)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// close ends PostgreSQL and deletes its data.
func (t *table) close() {
	_, _ = t.run(context.Background(), "pg_ctl", "-D", t.dir+"/data", "-m", "immediate", "stop") // fails if it has not started
	_ = os.RemoveAll(t.dir)
}

func (t *table) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(t.programs, program), args...)
	cmd.Dir = t.dir
	// It has no statistics of a young table, and would now and then read all of it for each take.
	cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+t.port, "PGUSER=postgres", "PGDATABASE=postgres", "PGOPTIONS=-c enable_seqscan=off")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	return cmd
}

// run runs a program of PostgreSQL to its end, and returns what it says.
func (t *table) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := t.command(ctx, program, args...)
	out, err := os.Create(filepath.Join(t.dir, "said")) // no pipe: the server that pg_ctl starts would hold it open
	if err != nil {
		return "", err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, readErr := os.ReadFile(out.Name())
	if err != nil {
		return "", fmt.Errorf("%s: %w; it says: %s", program, err, bytes.TrimSpace(said))
	}
	return string(said), readErr
}

func (t *table) sql(ctx context.Context, statement string) error {
	_, err := t.run(ctx, "psql", "-q", "-c", statement)
	return err
}

// connectTime is added to the time of pgbench, in which connections are made: seconds on a busy
// machine. The rate counts without it.
const connectTime = 7 * time.Second

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+) `)

// rate is how often in a second connections do together what is asked.
func (t *table) rate(ctx context.Context, l load, d time.Duration) (float64, error) {
	script := filepath.Join(t.dir, "script")
	if err := os.WriteFile(script, []byte(tableAsks[l.ask]), 0o644); err != nil {
		return 0, err
	}
	said, err := t.run(ctx, "pgbench", "-n", "-M", "prepared", "-c", strconv.Itoa(l.conns), "-j", "2",
		"-T", strconv.Itoa(int((d + connectTime).Seconds())), "-f", script)
	if err != nil {
		return 0, err
	}
	return rateOf(said)
}

// rateOf reads what pgbench says.
func rateOf(said string) (float64, error) {
	rate := tps.FindStringSubmatch(said)
	if rate == nil {
		return 0, fmt.Errorf("pgbench says %q, expected a line with tps", said)
	}
	return strconv.ParseFloat(rate[1], 64)
}

// rateOfTable measures the load of a case for the time of a measurement.
func rateOfTable(ctx context.Context, b *bench, p *peer, c *benchCase, r *row) error {
	t, err := b.openTable(ctx, p)
	if err != nil {
		return err
	}
	defer t.close()
	for _, f := range c.fill {
		fill := fmt.Sprintf("INSERT INTO job (payload) SELECT repeat('x', %d)::bytea FROM generate_series(1, %d)", payloadSize, f.count)
		if err := t.sql(ctx, fill); err != nil {
			return err
		}
	}
	rate, err := t.rate(ctx, c.loads[0], b.limit)
	if err == nil {
		r.Samples = append(r.Samples, rate)
	}
	return err
}

// tableCases compare the queue with a table.
func tableCases(n pick) []benchCase {
	each := n(400_000, 100_000)
	work := load{"work", 64, 1, 0}
	const about = "a table of PostgreSQL beside QPUSH, QPOP, QCLAIM and QACK, 64 connections, one at a time: "
	return []benchCase{
		rate("table-push", about+"pushes", tables, traffic{loads: []load{{"push", 64, 1, each}}}),
		rate("table-pop", about+"pops", tables, filled("push", each, load{"pop", 64, 1, each})),
		rate("table-work", about+"each row is pushed, claimed and acknowledged", tables, traffic{loads: []load{work}}),
		{
			name: "table-old", about: "the same as time goes by; in the middle third another transaction is open, as of a report or a backup",
			peers: tables, run: aging, traffic: traffic{loads: []load{work}, limit: time.Duration(n(20, 2)) * time.Second},
		},
	}
}

// The parts of aging, and those before and in which a transaction is open.
const ageParts, ageOpens, ageEnds = 6, 2, 4

// aging measures one load in parts, once. An open transaction keeps PostgreSQL from clearing away
// the rows that were deleted since it began.
func aging(ctx context.Context, b *bench, c *benchCase) ([]*row, error) {
	var rows []*row
	for part := range ageParts {
		name := fmt.Sprintf("old, after %.0f s", (time.Duration(part) * c.limit).Seconds())
		if part >= ageOpens && part < ageEnds {
			name += ", one open"
		}
		rows = append(rows, newRows(c, name, "packets/s")...)
	}
	err := b.each(ctx, c, 1, func(_, i int) error {
		rate, end, err := b.aged(ctx, &c.peers[i], c)
		if err != nil {
			return err
		}
		defer end()
		for part := range ageParts {
			sample, err := rate(part)
			if err != nil {
				return err
			}
			r := rows[part*len(c.peers)+i]
			r.Samples = append(r.Samples, sample)
		}
		return nil
	})
	return rows, err
}

// aged starts a peer. It returns what measures a part, and what ends the peer.
func (b *bench) aged(ctx context.Context, p *peer, c *benchCase) (rate func(part int) (float64, error), end func(), err error) {
	if p.measure == nil {
		s, err := b.filled(ctx, p)
		return func(int) (float64, error) {
			result, err := s.load(ctx, p.groups(queueTarget("", 0), c.loads...), c.limit)
			return result.Rate(), err
		}, func() { _ = b.discard(s) }, err
	}
	t, err := b.openTable(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	open, stop := context.WithCancel(ctx)
	return func(part int) (float64, error) {
		switch part {
		case ageOpens:
			reader := t.command(open, "psql")
			in, err := reader.StdinPipe()
			if err == nil {
				err = reader.Start()
			}
			if err == nil {
				_, err = io.WriteString(in, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM job;\n")
			}
			if err != nil {
				return 0, err
			}
			go func() { _ = reader.Wait() }() // ends with open
		case ageEnds:
			stop()
		}
		return t.rate(ctx, c.loads[0], c.limit)
	}, func() { stop(); t.close() }, nil
}
