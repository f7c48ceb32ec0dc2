package doors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePackagesThatMakeDistMakesAreInstalledInFreshProjects(t *testing.T) {
	if !*whole {
		t.Skip("takes longer: make doors")
	}
	t.Parallel()
	dir := t.TempDir()
	said := output(t, program(t, packaging+"clients.sh", "", dir))
	made := func(t *testing.T, name string) string {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil || len(found) != 1 {
			t.Fatalf("made %q, %v, want one %s; clients.sh says %s", found, err, name, said)
		}
		return found[0]
	}
	t.Run("Python", func(t *testing.T) {
		for _, module := range []string{"redis", "pip", "setuptools", "wheel"} {
			python(t, module)
		}
		installWheel(t, made(t, "holdfast_queue-*-py3-none-any.whl"))
	})
	t.Run("Node", func(t *testing.T) {
		program(t, "npm", "apt install npm") // without which the test is skipped
		redis := redisOfNode()
		if redis == "" {
			t.Skip("NODE_PATH has no redis: npm install redis")
		}
		installTarball(t, made(t, "holdfast-queue-*.tgz"), redis)
	})
}

// installWheel installs in an environment, which also has the machine's pip and redis-py.
func installWheel(t *testing.T, wheel string) {
	t.Helper()
	env := t.TempDir()
	output(t, program(t, python(t, "venv"), "", "-m", "venv", "--system-site-packages", "--without-pip", env))
	in := filepath.Join(env, "bin", "python")
	output(t, program(t, in, "", "-m", "pip", "install", "--quiet", "--no-index", wheel))
	got := output(t, program(t, in, "", "-c", "import holdfast_queue; print(holdfast_queue.__file__)"))
	if !strings.HasPrefix(got, env) {
		t.Errorf("it is imported from %s", got)
	}
	if typed := filepath.Join(filepath.Dir(strings.TrimSpace(got)), "py.typed"); !there(typed) {
		t.Errorf("there is no %s", typed)
	}
}

func redisOfNode() string {
	for _, dir := range filepath.SplitList(os.Getenv("NODE_PATH")) {
		if redis := filepath.Join(dir, "redis"); there(redis) {
			return redis
		}
	}
	return ""
}

// installTarball installs in a project, which gets redis as npm would install it.
func installTarball(t *testing.T, tarball, redis string) {
	t.Helper()
	project := t.TempDir()
	output(t, program(t, "npm", "apt install npm", "install", "--offline", "--legacy-peer-deps", "--no-audit", "--no-fund", "--no-update-notifier",
		"--cache", filepath.Join(project, "cache"), "--prefix", project, tarball))
	if err := os.Symlink(redis, filepath.Join(project, "node_modules", "redis")); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]string{
		"names.cjs": "console.log(Object.keys(require('holdfast-queue')).sort().join())",
		"names.mjs": "import * as queue from 'holdfast-queue'; console.log(Object.keys(queue).filter(name => !['default', 'module.exports'].includes(name)).sort().join())",
	} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	required := output(t, program(t, "node", "", filepath.Join(project, "names.cjs")))
	imported := output(t, program(t, "node", "", filepath.Join(project, "names.mjs")))
	if required != imported || len(required) < 2 {
		t.Errorf("require gives %s and import %s", required, imported)
	}
}

func there(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
