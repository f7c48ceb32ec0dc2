package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readmeCode is the first code of a language under the heading of the Go client in the README.
func readmeCode(t *testing.T, language string) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	ok(t, err)
	_, section, _ := strings.Cut(string(readme), "\n### A worker in Go\n")
	_, code, found := strings.Cut(section, "```"+language+"\n")
	if !found {
		t.Fatalf("the README shows no %s of the Go client", language)
	}
	code, _, _ = strings.Cut(code, "```")
	return code
}

// The code of the README is part of an example, which runs.
func TestTheReadmeShowsTheExample(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	ok(t, err)
	code := readmeCode(t, "go")
	example := strings.ReplaceAll(strings.ReplaceAll(string(examples), "\n\t", "\n"), "address()", `"127.0.0.1:6379"`)
	if !strings.Contains(example, code) {
		t.Errorf("the README shows\n%s\nwhich no example has", code)
	}
}

func TestAModuleUsesTheClientFromACheckoutAsTheReadmeSays(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	ok(t, err)
	dir := t.TempDir()
	program := `package main

import (
	"context"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func send(ctx context.Context, mail []byte) error { return nil }

func main() {
	ctx, signals := context.Background(), make(chan os.Signal)
` + readmeCode(t, "go") + "log.Print(err)\n}\n"
	ok(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	commands := strings.Replace(readmeCode(t, "sh"), "/path/to/holdfast", root, 1)
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", "go mod init example.org/mailer\n"+commands+"go vet .\n")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v; it says\n%s", err, said)
	}
}
