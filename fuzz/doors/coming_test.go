package doors

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The page for those who come from other queues says what to write here. Each command on it is one
// that the server takes. Its claims stand for any.
func TestTheServerTakesEachCommandOfThePageForOtherQueues(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../netproto/client/COMING.md")
	if err != nil {
		t.Fatal(err)
	}
	c := start(t).client(t)
	word := regexp.MustCompile(`"([^"]*)"|'([^']*)'|(\S+)`)
	commands := 0
	for _, code := range regexp.MustCompile("`(Q[A-Z]+ [^`]+)`").FindAllStringSubmatch(string(page), -1) {
		var args []any
		for _, w := range word.FindAllStringSubmatch(code[1], -1) {
			args = append(args, w[1]+w[2]+w[3])
		}
		if i := slices.Index(args, any("BLOCK")); i > 0 {
			args[i+1] = "1"
		}
		commands++
		err := c.Redis().Do(t.Context(), args...).Err()
		if err != nil && err != redis.Nil && strings.HasPrefix(err.Error(), "ERR ") {
			t.Errorf("%s: %v", code[1], err)
		}
	}
	if commands < 80 {
		t.Errorf("the page has %d commands, want 80 or more", commands)
	}
}

// The page names options and calls of the Go client.
func TestTheGoClientHasWhatThePageForOtherQueuesNames(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../netproto/client/COMING.md")
	if err != nil {
		t.Fatal(err)
	}
	all := output(t, program(t, "go", "", "doc", "-all", "../../netproto/client"))
	_, section, _ := strings.Cut(string(page), "\n## asynq\n")
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile("`client\\.([A-Z]\\w+)").FindAllStringSubmatch(section, -1)
	for _, name := range names {
		if name[1] != "Enqueue" && !regexp.MustCompile(`\nfunc (\(c \*Client\) )?`+name[1]+`[(\[]`).MatchString(all) {
			t.Errorf("the client has no %s", name[1])
		}
	}
	if len(names) < 20 {
		t.Errorf("the page names %d of them, want 20 or more", len(names))
	}
}
