package client_test

import (
	"os"
	"strings"
	"testing"
)

// The code of the README is part of an example, which runs.
func TestTheReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	ok(t, err)
	examples, err := os.ReadFile("example_test.go")
	ok(t, err)
	_, code, found := strings.Cut(string(readme), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	example := strings.ReplaceAll(strings.ReplaceAll(string(examples), "\n\t", "\n"), "address()", `"127.0.0.1:6379"`)
	if !found || !strings.Contains(example, code) {
		t.Errorf("the README shows\n%s\nwhich no example has", code)
	}
}
