package doors

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nodePackage is the package for Node, which has no modules beside it.
const nodePackage = "../../netproto/client/node"

// nodes are the libraries below the package, by the names by which .ci/run installs them.
var nodes = []struct{ module, protocol string }{{"redis", "2"}, {"redis", "3"}, {"redis6", "2"}, {"redis6", "3"}}

// moduleFolder returns the folder of a module of Node: it is installed here or in a folder that
// NODE_PATH names.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	path, err := program(t, "node", "apt install nodejs", "-p", `require("path").dirname(require.resolve(process.argv[1] + "/package.json"))`, module).Output()
	if err != nil {
		t.Skipf("the module %s is not installed: npm install in a folder whose node_modules is NODE_PATH", module)
	}
	return strings.TrimSpace(string(path))
}

// project returns a folder of a program of Node that has the package and node-redis.
func project(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "node_modules", "holdfast-queue"), os.DirFS(nodePackage)))
	must(t, os.Symlink(moduleFolder(t, module), filepath.Join(dir, "node_modules", "redis")))
	return dir
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copyTo copies a file of testdata to a folder.
func copyTo(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

// node returns a command that runs a program of testdata in a project.
func node(t *testing.T, dir, script, addr, protocol string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, "node", "apt install nodejs", append([]string{copyTo(t, dir, script)}, args...)...)
	cmd.Env = append(cmd.Env, "HOLDFAST_URL=redis://"+addr, "HOLDFAST_RESP="+protocol)
	return cmd
}

func TestThePackageForNode(t *testing.T) {
	t.Parallel()
	for _, n := range nodes {
		t.Run(n.module+" RESP"+n.protocol, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(project(t, n.module) + "/node_modules/holdfast-queue/test/*.test.mjs")
			if err != nil || len(files) == 0 {
				t.Fatalf("the package has no tests: %v", err)
			}
			cmd := program(t, "node", "apt install nodejs", append([]string{"--test", "--test-force-exit", "--test-reporter=spec"}, files...)...)
			cmd.Env = append(cmd.Env, "HOLDFAST_URL=redis://"+start(t).addr, "HOLDFAST_RESP="+n.protocol)
			output(t, cmd)
		})
	}
}

// npm is slow, and its cache is the user's.
func TestAFreshProjectOfNodeTakesThePackageThatNPMPacks(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), start(t)
	ours, err := filepath.Abs(nodePackage)
	must(t, err)
	npm := func(args ...string) string {
		cmd := program(t, "npm", "apt install npm", append(args, "--offline", "--no-audit", "--no-fund", "--no-update-notifier")...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "npm_config_cache="+filepath.Join(dir, "cache"))
		return output(t, cmd)
	}
	redis := moduleFolder(t, "redis")
	var packed []struct {
		Filename string
		Files    []struct{ Path string }
	}
	text := npm("pack", "--json", ours)
	must(t, json.Unmarshal([]byte(text[strings.Index(text, "["):]), &packed))
	for _, f := range packed[0].Files {
		if strings.HasPrefix(f.Path, "test/") {
			t.Errorf("%s is packed", f.Path)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name": "fresh", "private": true}`), 0o600))
	npm("install", "--legacy-peer-deps", "./"+packed[0].Filename) // node-redis is not fetched again
	must(t, os.Symlink(redis, filepath.Join(dir, "node_modules", "redis")))
	if got := output(t, node(t, dir, "fresh.mjs", s.addr, "3")); got != "a packet\n" {
		t.Errorf("the program says %q, want a packet", got)
	}
}

func TestTheTypesOfThePackageForNode(t *testing.T) {
	t.Parallel()
	compiler := filepath.Join(moduleFolder(t, "typescript"), "bin", "tsc")
	for _, module := range []string{"redis", "redis6"} {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			dir := project(t, module)
			must(t, os.Symlink(filepath.Dir(moduleFolder(t, "@types/node")), filepath.Join(dir, "node_modules", "@types")))
			must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600))
			cmd := program(t, "node", "apt install nodejs", compiler, "--strict", "--noEmit", "--skipLibCheck", "false",
				"--target", "es2022", "--module", "nodenext", "--types", "node", copyTo(t, dir, "example.ts"))
			cmd.Dir = dir
			output(t, cmd)
		})
	}
}
