package holdfast_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-queue/holdfast/"

// mayImport says which other layers a layer may import. A command wires the layers, so it may also
// import what is below the broker. The harness in fuzz may import everything.
func mayImport(layer string) []string {
	switch layer {
	case "cmd":
		return []string{"netproto", "broker", "recovery", "storage", content, jsonbytes}
	case "netproto":
		return []string{"broker", wire, jsonbytes}
	case wire:
		return []string{"netproto"}
	case "broker":
		return []string{keyspace, "recovery", "storage", content, "index"}
	case "recovery":
		return []string{keyspace, "storage", content, "index", jsonbytes}
	case "storage":
		return []string{content}
	case keyspace:
		return []string{"index"}
	case "fuzz":
		return []string{"cmd", "netproto", "broker", keyspace, "recovery", "storage", content, "index", jsonbytes}
	}
	return nil
}

// wire is a layer of its own: the bytes of the Redis protocol know no queues.
const wire = "netproto/resp/wire"

// keyspace is a layer of its own: recovery fills it for the broker.
const keyspace = "index/keyspace"

// jsonbytes is a layer of its own: all that write or read JSON have it in common.
const jsonbytes = "recovery/jsonbytes"

// content is a layer of its own: it is what a store holds, whoever keeps it.
const content = "storage/content"

// cell is the one package that knows etcd: what is above it knows members and a log.
const cell = "storage/cell"

// layerOf is the layer of a path in the module.
func layerOf(path string) string {
	for _, own := range []string{wire, keyspace, jsonbytes, content} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return own
		}
	}
	top, _, _ := strings.Cut(path, "/")
	return top
}

// isPure says that a layer does what index may do, and no more.
func isPure(layer string) bool {
	return layer == "index" || layer == keyspace || layer == jsonbytes || layer == content
}

// isHash says that a package is a hash function. Content has hashes of what it holds.
func isHash(name string) bool {
	return name == "crypto/sha256" || name == "github.com/cespare/xxhash/v2"
}

// impure is what the pure layers must not import: clocks, input and output, goroutines, random
// numbers. hash/maphash is allowed: its random seed decides nothing that can be seen.
func impure() []string {
	return []string{"time", "os", "io", "net", "syscall", "math/rand", "crypto", "log", "sync", "runtime", "bufio", "context"}
}

// breaksArrows checks the imports of a file. A test may import every layer except fuzz.
func breaksArrows(s *source) []string {
	if s.file == nil {
		return nil
	}
	var found []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		if why := refuses(s, name); why != "" {
			found = append(found, fmt.Sprintf("line %d imports %s: %s", s.line(spec.Pos()), name, why))
		}
	}
	if layer := layerOf(s.path); isPure(layer) && !s.isTest() {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				found = append(found, fmt.Sprintf("line %d starts a goroutine: %s starts none", s.line(g.Pos()), layer))
			}
			return true
		})
	}
	return found
}

// rooms are the packages of the command line, from its top. Each may import those behind it.
func rooms() []string {
	return []string{"cmd/holdfast", "cmd/ask", "cmd/folder", "cmd/connection", "cmd/config", "cmd/doctor", "cmd/cluster", "cmd/cluster/peer", "cmd/daemon", "cmd/certs", "cmd/terminal"}
}

// testRooms hold what only tests need: they and the harness in fuzz import it.
func testRooms() []string {
	return []string{"cmd/terminal/terminaltest", "netproto/inmemory", "recovery/recoverytest", "storage/disk/simulated", "storage/inject"}
}

// refuses says why a file may not import a package; "" if it may.
func refuses(s *source, name string) string {
	layer := layerOf(s.path)
	if below, ours := strings.CutPrefix(name, module); ours {
		target := layerOf(below)
		switch {
		case slices.Contains(testRooms(), below) && layer != "fuzz" && !s.isTest():
			return below + " is for tests alone"
		case target == layer:
			room, other := slices.Index(rooms(), s.folder()), slices.Index(rooms(), below)
			if other >= 0 && other < room && !s.isTest() {
				return fmt.Sprintf("of the command line %s may import only %q", s.folder(), rooms()[room+1:])
			}
			return ""
		case target == "fuzz":
			return "nothing imports fuzz"
		case layer == "broker" && target == "recovery" && below != target && !s.isTest():
			return "broker needs the state that recovery makes, not the commands below it"
		case !s.isTest() && !slices.Contains(mayImport(layer), target):
			return fmt.Sprintf("%s may import of this module only itself and %q", layer, mayImport(layer))
		}
		return ""
	}
	if strings.HasPrefix(name, "github.com/dgraph-io/") && layer != "storage" {
		return "only storage imports Badger"
	}
	if strings.HasPrefix(name, "go.etcd.io/") && s.folder() != cell && !(layer == "fuzz" && s.isTest()) {
		return "only storage/cell imports etcd"
	}
	if isPure(layer) && !s.isTest() && !(layer == content && isHash(name)) {
		if first, _, _ := strings.Cut(name, "/"); strings.Contains(first, ".") {
			return layer + " imports the standard library only"
		}
		for _, p := range impure() {
			if name == p || strings.HasPrefix(name, p+"/") {
				return layer + " reads no clock, draws no random number and does no input or output"
			}
		}
	}
	return ""
}

func TestImportsFollowTheArrows(t *testing.T) { enforce(t, breaksArrows) }

func TestWrongArrowsAreFound(t *testing.T) {
	file := func(pkg, imported string) string {
		return fmt.Sprintf("package %s\n\nimport _ %q\n", pkg, imported)
	}
	const badger = "github.com/dgraph-io/badger/v4"
	const etcd = "go.etcd.io/etcd/client/v3"
	prove(t, breaksArrows, map[string]planted{
		"netproto may not reach past the broker":   {"netproto/x/x.go", file("x", module+"storage"), "only itself"},
		"netproto may not reach the index":         {"netproto/x.go", file("netproto", module+"index"), "only itself"},
		"the Redis wire may not know the broker":   {"netproto/resp/wire/x.go", file("wire", module+"broker"), "only itself"},
		"broker may not know a protocol":           {"broker/x.go", file("broker", module+"netproto"), "only itself"},
		"recovery may not know the broker":         {"recovery/x.go", file("recovery", module+"broker"), "only itself"},
		"storage may not know the index":           {"storage/x.go", file("storage", module+"index"), "only itself"},
		"index may not know the storage":           {"index/x.go", file("index", module+"storage"), "only itself"},
		"a command may not use the index":          {"cmd/x/x.go", file("main", module+"index"), "only itself"},
		"a room may not know one above it":         {"cmd/terminal/x.go", file("terminal", module+"cmd/daemon"), "may import only"},
		"nothing imports fuzz":                     {"cmd/x/x.go", file("main", module+"fuzz/crash"), "nothing imports fuzz"},
		"nothing imports fuzz, not even a test":    {"broker/x_test.go", file("broker", module+"fuzz"), "nothing imports fuzz"},
		"what is for tests is for tests alone":     {"cmd/daemon/x.go", file("daemon", module+"netproto/inmemory"), "for tests alone"},
		"not even its own layer imports it":        {"storage/x.go", file("storage", module+"storage/disk/simulated"), "for tests alone"},
		"only storage imports Badger":              {"recovery/x.go", file("recovery", badger), "only storage"},
		"not even a test elsewhere imports Badger": {"fuzz/x_test.go", file("fuzz", badger), "only storage"},
		"only storage/cell imports etcd":           {"storage/x.go", file("storage", etcd), "only storage/cell"},
		"no part of etcd is imported elsewhere":    {"cmd/daemon/x.go", file("daemon", "go.etcd.io/raft/v3"), "only storage/cell"},
		"not even a test elsewhere imports etcd":   {"cmd/daemon/x_test.go", file("daemon", etcd), "only storage/cell"},
		"the harness itself imports no etcd":       {"fuzz/cluster/x.go", file("cluster", etcd), "only storage/cell"},
		"keyspace reads no clock":                  {"index/keyspace/x.go", file("keyspace", "time"), "no clock"},
		"keyspace may not know the broker":         {"index/keyspace/x.go", file("keyspace", module+"broker"), "only itself"},
		"keyspace may not know the storage":        {"index/keyspace/x.go", file("keyspace", module+"storage"), "only itself"},
		"content may not know the store":           {"storage/content/x.go", file("content", module+"storage"), "only itself"},
		"content touches no file":                  {"storage/content/x.go", file("content", "os"), "no clock"},
		"content takes no lock":                    {"storage/content/x.go", file("content", "sync"), "no clock"},
		"content imports no Badger":                {"storage/content/x.go", file("content", badger), "only storage"},
		"a hash is for content alone":              {"index/x.go", file("index", "crypto/sha256"), "no clock"},
		"netproto may not reach the content":       {"netproto/x.go", file("netproto", module+content), "only itself"},
		"netproto may not reach the keyspace":      {"netproto/x.go", file("netproto", module+keyspace), "only itself"},
		"the store and the broker write no JSON":   {"broker/x.go", file("broker", module+jsonbytes), "only itself"},
		"index reads no clock":                     {"index/x.go", file("index", "time"), "no clock"},
		"index draws no random number":             {"index/x.go", file("index", "math/rand/v2"), "no clock"},
		"broker may not use an offline command":    {"broker/x.go", file("broker", module+"recovery/dump"), "not the commands"},
		"dump may not know the broker":             {"recovery/dump/x.go", file("dump", module+"broker"), "only itself"},
		"index does no output":                     {"index/x.go", file("index", "os"), "no clock"},
		"index uses no other module":               {"index/x.go", file("index", "golang.org/x/sys/unix"), "standard library"},
		"index starts no goroutine":                {"index/x.go", "package index\n\nfunc f() { go f() }\n", "starts a goroutine"},

		"the whole chain is allowed":        {"broker/x.go", file("broker", module+"index"), ""},
		"a protocol may write JSON":         {"netproto/resp/x.go", file("resp", module+jsonbytes), ""},
		"the Redis protocol has its wire":   {"netproto/resp/x.go", file("resp", module+wire), ""},
		"the wire may use the limits":       {"netproto/resp/wire/x.go", file("wire", module+"netproto"), ""},
		"a command may use the storage":     {"cmd/x/x.go", file("main", module+"storage"), ""},
		"a room may use one below it":       {"cmd/holdfast/x.go", file("main", module+"cmd/terminal"), ""},
		"a generator may speak a protocol":  {"cmd/workshop/loadgen/x.go", file("loadgen", module+"netproto/pinpriq"), ""},
		"broker may use the keyspace":       {"broker/x.go", file("broker", module+keyspace), ""},
		"recovery may use the keyspace":     {"recovery/x.go", file("recovery", module+keyspace), ""},
		"broker may use recovery":           {"broker/x.go", file("broker", module+"recovery"), ""},
		"a command's work may use storage":  {"recovery/dump/x.go", file("dump", module+"storage"), ""},
		"a protocol may use the server":     {"netproto/x/x.go", file("x", module+"netproto"), ""},
		"content may hash":                  {"storage/content/x.go", file("content", "crypto/sha256"), ""},
		"storage may use the content":       {"storage/x.go", file("storage", module+content), ""},
		"broker may use the content":        {"broker/x.go", file("broker", module+content), ""},
		"storage may import Badger":         {"storage/x.go", file("storage", badger), ""},
		"storage/cell may import etcd":      {cell + "/x.go", file("cell", etcd), ""},
		"a test may use what is for tests":  {"broker/x_test.go", file("broker", module+"storage/disk/simulated"), ""},
		"so may the harness":                {"fuzz/crash/x.go", file("crash", module+"storage/inject"), ""},
		"a test of fuzz may import etcd":    {"fuzz/cluster/x_test.go", file("cluster", etcd), ""},
		"a test may build what it tests on": {"netproto/x_test.go", file("netproto", module+"storage"), ""},
		"a test of index may use a clock":   {"index/x_test.go", file("index", "time"), ""},
		"the harness may use everything":    {"fuzz/x.go", file("fuzz", module+"index"), ""},
	})
}

// asksAround finds who asks the index for what has an id. What is due may not be swept yet: only
// the file that ends it first may ask.
func asksAround(s *source) []string {
	if s.file == nil || s.isTest() || s.layer() != "broker" || s.path == "broker/due.go" {
		return nil
	}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Holder", "Find", "Only"}, call.Sel.Name) {
			return true
		}
		of := call.X
		if inner, ok := of.(*ast.SelectorExpr); ok {
			of = inner.Sel
		}
		if x, ok := of.(*ast.Ident); ok && x.Name == "ix" {
			found = append(found, fmt.Sprintf("line %d asks the index (%s): broker/due.go does, which ends what is due first", s.line(call.Pos()), call.Sel.Name))
		}
		return true
	})
	return found
}

func TestOnlyOneFileAsksWhoHasAnID(t *testing.T) { enforce(t, asksAround) }

func TestQuestionsToTheIndexAreFound(t *testing.T) {
	file := func(call string) string { return "package broker\n\nfunc (m *Machine) f() { " + call + " }\n" }
	prove(t, asksAround, map[string]planted{
		"by an id of a client":      {"broker/x.go", file("m.ix.Holder(1, nil)"), "asks the index (Holder)"},
		"by an identity":            {"broker/x.go", file("_, _ = tx.m.ix.Find(1)"), "asks the index (Find)"},
		"by a key":                  {"broker/x.go", file("m.ix.Only(1, nil)"), "asks the index (Only)"},
		"of an index by its name":   {"broker/x.go", file("ix := m.ix; ix.Find(1)"), "asks the index (Find)"},
		"as a value":                {"broker/x.go", file("g(m.ix.Find)"), "asks the index (Find)"},
		"names are found elsewhere": {"broker/x.go", file("m.names.Find(0, nil)"), ""},
		"a slot is read again":      {"broker/x.go", file("m.ix.Get(1)"), ""},
		"the one file may":          {"broker/due.go", file("m.ix.Find(1)"), ""},
		"a test may":                {"broker/x_test.go", file("m.ix.Find(1)"), ""},
	})
}

// aroundDisk finds where the store touches files by another way than storage/disk. A simulated
// device does not know of that.
func aroundDisk(s *source) []string {
	if s.file == nil || s.isTest() || !slices.Contains([]string{"storage", "storage/journal", "storage/tables"}, s.folder()) {
		return nil
	}
	calls := strings.Fields("os.Create os.CreateTemp os.File os.Link os.Lstat os.Mkdir os.MkdirAll os.Open os.OpenFile os.ReadDir os.ReadFile " +
		"os.Remove os.RemoveAll os.Rename os.Stat os.Symlink os.Truncate os.WriteFile unix.Mmap unix.Statfs")
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := call.X.(*ast.Ident); ok && slices.Contains(calls, of.Name+"."+call.Sel.Name) {
				found = append(found, fmt.Sprintf("line %d has %s.%s: storage/disk has it", s.line(call.Pos()), of.Name, call.Sel.Name))
			}
		}
		return true
	})
	return found
}

func TestTheStoreTouchesFilesByStorageDisk(t *testing.T) { enforce(t, aroundDisk) }

func TestWaysAroundStorageDiskAreFound(t *testing.T) {
	file := func(call string) string { return "package storage\n\nfunc f() { " + call + " }\n" }
	prove(t, aroundDisk, map[string]planted{
		"a call":                {"storage/x.go", file("_ = os.Remove(x)"), "storage/disk has it"},
		"a type":                {"storage/journal/x.go", file("var f *os.File; g(f)"), "storage/disk has it"},
		"as a value":            {"storage/tables/x.go", file("g(os.Stat)"), "storage/disk has it"},
		"a mapping":             {"storage/tables/x.go", file("unix.Mmap()"), "storage/disk has it"},
		"an error is none":      {"storage/x.go", file("g(os.ErrNotExist)"), ""},
		"nor is one of disk":    {"storage/x.go", file("disk.Remove(x)"), ""},
		"others may":            {"recovery/x.go", file("os.Remove(x)"), ""},
		"what it is made of":    {"storage/disk/x.go", file("os.Remove(x)"), ""},
		"a test touches others": {"storage/x_test.go", file("os.Remove(x)"), ""},
	})
}
