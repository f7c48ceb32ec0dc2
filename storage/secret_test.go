package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

func secretOf(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, secretName))
	if err != nil {
		t.Fatal(err)
	}
	secret, ok := decodeSecret(b)
	if !ok {
		t.Fatalf("the secret is %q", b)
	}
	return secret
}

// logRecordOf is a record as Badger writes it to a log.
func logRecordOf(meta byte, key string, version uint64, value []byte) []byte {
	b := []byte{meta, 0}
	b = binary.AppendUvarint(b, uint64(len(key)+8))
	b = binary.AppendUvarint(b, uint64(len(value)))
	b = append(append(b, 0), key...)
	b = binary.BigEndian.AppendUint64(b, math.MaxUint64-version)
	b = append(b, value...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

func TestPayloadThatLooksLikeALogDoesNotMakeATornBatchDamage(t *testing.T) {
	live := t.TempDir()
	s := smallStore(t, live)
	var b Batch
	log, second := filepath.Join(dbName, filepath.Base(s.wal.files[0].file.Name())), 0
	for i := range 3 {
		if i == 2 {
			sofar, err := os.ReadFile(filepath.Join(live, log))
			if err != nil {
				t.Fatal(err)
			}
			second = readLog(sofar, 0).at
		}
		b.Reset()
		b.Put(PacketID{1, 0, uint64(i)}, &Packet{Payload: []byte("first")})
		if i == 2 {
			// All that a client can know: the form of every record, and a secret of its own.
			control := Control{Epoch: 1, Batch: 900, Marks: firstMarks()}
			fake := []byte("marked")
			for _, secret := range [][]byte{nil, make([]byte, secretLen), bytes.Repeat([]byte{0xff}, secretLen)} {
				for version := range uint64(20) {
					fake = append(fake, logRecordOf(metaTxn, string(appendPacketKey(nil, PacketID{1, 1, version})), version, []byte("x"))...)
					fake = append(fake, logRecordOf(metaTxn, controlKey, version, appendControl(nil, &control, secret))...)
					fake = append(fake, logRecordOf(metaFinTxn, "!badger!txn", version, fmt.Append(nil, version))...)
				}
			}
			b.Put(PacketID{1, 1, uint64(i)}, &Packet{Payload: fake})
		}
		b.Put(PacketID{1, 2, uint64(i)}, &Packet{Payload: []byte("last")})
		if err := s.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(filepath.Join(live, log))
	if err != nil {
		t.Fatal(err)
	}
	// The records of one transaction are in any order.
	flip := func(b []byte, text string) { b[bytes.LastIndex(b, []byte(text))] ^= 1 }
	for name, torn := range map[string]func(b []byte){
		"a small packet":     func(b []byte) { flip(b, "first") },
		"the payload":        func(b []byte) { flip(b, "marked") },
		"the control record": func(b []byte) { flip(b, string(s.secret)) },
		"every batch": func(b []byte) {
			clear(b[logHeader:second])
			flip(b, "first")
			flip(b, string(s.secret))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFolder(t, live, dir)
			want := uint64(2)
			if strings.HasPrefix(name, "every") {
				want = 0
			}
			forget(t, dir, want)
			b := append([]byte(nil), whole...)
			torn(b)
			if err := os.WriteFile(filepath.Join(dir, log), b, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{MemTable: minMemTable})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := s.Control().Batch; got != want {
				t.Errorf("%d batches, want %d", got, want)
			}
		})
	}
	// Where no version is known, the one control record with the secret is that of the torn batch
	// itself.
	if laterBatch(whole[second:], 0, s.secret) {
		t.Error("a control record without the secret counts where no version is known")
	}
}

func TestDamageIsSeenByAnyTransactionBehindIt(t *testing.T) {
	for name, then := range map[string]func(s *Store) error{
		"a batch": func(s *Store) error { return s.Apply(one(9, Packet{})) },
		"a filler": func(s *Store) error {
			return s.commitFiller(func(txn *badger.Txn) error { return txn.Delete([]byte(fillerKey)) })
		},
		"a redo's chunk": func(s *Store) error { return s.carryOut([]removal{{id: PacketID{1, 1, 1}}}, &s.control) },
	} {
		t.Run(name, func(t *testing.T) {
			live, dir := t.TempDir(), t.TempDir()
			s := smallStore(t, live)
			for i := range uint64(3) {
				if err := s.Apply(one(i, Packet{Payload: fmt.Appendf(nil, "number %d", i)})); err != nil {
					t.Fatal(err)
				}
			}
			if err := then(s); err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(dbName, filepath.Base(s.wal.files[0].file.Name()))
			copyFolder(t, live, dir)
			forget(t, dir, 1) // a power cut within the anchor's second
			b, err := os.ReadFile(filepath.Join(dir, log))
			if err != nil {
				t.Fatal(err)
			}
			b[bytes.Index(b, []byte("number 2"))] ^= 1
			if err := os.WriteFile(filepath.Join(dir, log), b, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // refusing changes nothing
				refused, err := Open(dir, Options{MemTable: minMemTable})
				if err == nil {
					refused.Close()
				}
				if !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrLoss) {
					t.Fatalf("Open gives %v", err)
				}
			}
			s = openTest(t, dir, Options{MemTable: minMemTable, AcceptLoss: true})
			if got := s.Control().Batch; got != 2 {
				t.Errorf("%d batches are left, want 2", got)
			}
		})
	}
}

func TestLogWhoseFirstRecordIsTornIsCutToItsHeader(t *testing.T) {
	dir, log, ends := killed(t, 1)
	forget(t, dir, 0)
	name := filepath.Join(dir, log)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// The first record claims a value of 1 GiB, for which Badger would take memory.
	rest := append(binary.AppendUvarint([]byte{metaTxn, 0, 20}, 1<<30), b[logHeader+4:ends[0]]...)
	copy(b[logHeader:], rest)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := checkLogs(filepath.Join(dir, dbName), secretOf(t, dir), nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Size() != logHeader {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
	if n, err := check(t, dir, "cut", 1); err != nil || n != 0 {
		t.Errorf("%d batches, %v", n, err)
	}
}

func TestFolderWithoutASecretGetsOne(t *testing.T) {
	dir, _, _ := killed(t, 3)
	old := secretOf(t, dir)
	if err := os.Remove(filepath.Join(dir, secretName)); err != nil {
		t.Fatal(err)
	}
	if n, err := check(t, dir, "without a secret", 3); err != nil || n != 3 {
		t.Errorf("%d batches, %v", n, err)
	}
	made := secretOf(t, dir)
	if bytes.Equal(made, old) {
		t.Error("two secrets are the same")
	}
	s := smallStore(t, dir)
	if err := s.Apply(one(100, Packet{})); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(secretOf(t, dir), made) || !bears(s.apply.control, made) {
		t.Error("the next start has another one")
	}
}

func TestTornTransactionOfACompactionIsNoDamage(t *testing.T) {
	live, dir := t.TempDir(), t.TempDir()
	s := smallStore(t, live)
	for i := range uint64(3) {
		if err := s.Apply(one(i, Packet{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.span(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dbName, filepath.Base(s.wal.files[0].file.Name()))
	copyFolder(t, live, dir)
	forget(t, dir, 3) // the anchor follows the transaction
	b, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	const before = 5 // the key in a record
	at := bytes.LastIndex(b, []byte(controlKey)) - before
	r, ok := parseLogRecord(b[at:])
	if !ok {
		t.Fatal("the last control record cannot be read")
	}
	clear(b[at+r.size:])
	if err := os.WriteFile(filepath.Join(dir, log), b, 0o600); err != nil {
		t.Fatal(err)
	}
	v := openView(t, dir, ViewOptions{Tolerant: true})
	if found := v.Findings(); len(found) > 0 {
		t.Errorf("findings %v", found)
	}
	if ids := viewed(t, v); len(ids) != 3 {
		t.Errorf("%d packets, want 3", len(ids))
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if c := smallStore(t, dir).Control(); c.Batch != 3 || c.Live != 3 {
		t.Errorf("the control record is %+v", c)
	}
}
