package doors

import (
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestClientsFindTheServerBySentinel(t *testing.T) {
	t.Parallel()
	node := func(module, env string) func(t *testing.T) *exec.Cmd {
		return func(t *testing.T) *exec.Cmd {
			cmd := program(t, "node", "apt install nodejs", copyTo(t, t.TempDir(), "sentinel.cjs"))
			cmd.Env = append(cmd.Env, "MODULE="+moduleFolder(t, module), env)
			return cmd
		}
	}
	for name, client := range map[string]func(t *testing.T) *exec.Cmd{
		"redis-py": func(t *testing.T) *exec.Cmd { return program(t, python(t, "redis"), "", "testdata/sentinel.py") },
		"redis":    node("redis", "RESP=2"),
		"redis/3":  node("redis", "RESP=3"),
		"redis6":   node("redis6", "RESP=2"),
		"redis6/3": node("redis6", "RESP=3"),
		"ioredis":  node("ioredis", "DETECTOR=yes"),
		"ioredis6": node("ioredis6", "DETECTOR=yes"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := client(t)
			s := &server{dir: t.TempDir(), addr: "127.0.0.1:0", sentinel: "127.0.0.1:0"}
			s.again(t)
			cmd.Env = append(cmd.Env, "SENTINEL="+s.sentinel, "QUEUE=q", "ROUNDS=1")
			if got := output(t, cmd); got != "push 0-0\npushed 0-0\npop\npopped 0-0\n" {
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
