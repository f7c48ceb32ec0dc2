package broker_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePackageCommentListsEachCall reads the sources: each method of Tx is in the list of doc.go.
func TestThePackageCommentListsEachCall(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "The calls of a Tx")
	list, _, found := strings.Cut(list, "The path of one push")
	if !found {
		t.Fatal("doc.go has no list of calls before its path of one push")
	}
	listed := map[string]bool{}
	for _, word := range regexp.MustCompile(`[A-Z]\w+`).FindAllString(list, -1) {
		listed[word] = true
	}
	files, _ := filepath.Glob("*.go")
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range regexp.MustCompile(`(?m)^func \(tx \*Tx\) ([A-Z]\w+)`).FindAllSubmatch(source, -1) {
			if !strings.HasSuffix(file, "_test.go") && !listed[string(call[1])] {
				t.Errorf("doc.go does not list Tx.%s of %s", call[1], file)
			}
		}
	}
}
