package doors

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestClientsFindTheServerBySentinel(t *testing.T) {
	t.Parallel()
	node := func(module, script string) func(t *testing.T) *exec.Cmd {
		return func(t *testing.T) *exec.Cmd {
			cmd := program(t, "node", "apt install nodejs", copyTo(t, t.TempDir(), script))
			cmd.Env = append(cmd.Env, "MODULE="+moduleFolder(t, module))
			return cmd
		}
	}
	for name, client := range map[string]func(t *testing.T) *exec.Cmd{
		"redis-py": func(t *testing.T) *exec.Cmd { return program(t, python(t, "redis"), "", "testdata/sentinel.py") },
		"redis":    node("redis", "sentinel.cjs"),
		"redis6":   node("redis6", "sentinel.cjs"),
		"ioredis":  node("ioredis", "sentinelio.cjs"),
		"ioredis6": node("ioredis6", "sentinelio.cjs"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := client(t)
			s := &server{dir: t.TempDir(), addr: "127.0.0.1:0", sentinel: "127.0.0.1:0"}
			s.again(t)
			cmd.Env = append(cmd.Env, "SENTINEL="+s.sentinel)
			if got := output(t, cmd); got == "" || strings.ReplaceAll(got, "hello\n", "") != "" { // node-redis does it twice
				t.Errorf("it pops %q, want what it has pushed", got)
			}
		})
	}
	t.Run("go-redis", func(t *testing.T) {
		t.Parallel()
		s := &server{dir: t.TempDir(), addr: "127.0.0.1:0", sentinel: "127.0.0.1:0"}
		s.again(t)
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{s.sentinel}})
		defer c.Close()
		must(t, c.LPush(t.Context(), "q", "hello").Err())
		if got, err := c.RPop(t.Context(), "q").Result(); got != "hello" {
			t.Errorf("it pops %q, %v; want what it has pushed", got, err)
		}
	})
}
