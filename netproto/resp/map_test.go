package resp

import (
	"os"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// mapped are the words in capitals of each file's entry in doc.go, which may go on in more lines.
func mapped(t *testing.T) map[string][]string {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	all, file := make(map[string][]string), ""
	for _, entry := range regexp.MustCompile(`(?m)^//\t(\w+\.go)?\s+(.*)$`).FindAllStringSubmatch(string(text), -1) {
		if entry[1] != "" {
			file = entry[1]
		}
		all[file] = append(all[file], regexp.MustCompile(`\b[A-Z]{3,}\b`).FindAllString(entry[2], -1)...)
	}
	return all
}

func TestTheMapSaysWhichFileCarriesOutACommand(t *testing.T) {
	left := mapped(t)
	for name, c := range newTable() {
		run := c.run
		if c.subs != nil {
			run = c.subs[0].run
		}
		f := runtime.FuncForPC(reflect.ValueOf(run).Pointer())
		file, _ := f.FileLine(f.Entry())
		file = path.Base(file)
		at := slices.Index(left[file], strings.ToUpper(name))
		if at < 0 {
			t.Errorf("doc.go does not name %s beside %s", strings.ToUpper(name), file)
			continue
		}
		left[file] = slices.Delete(left[file], at, at+1)
	}
	for file, names := range left {
		if len(names) > 0 {
			t.Errorf("doc.go names %v beside %s, which does not carry them out", names, file)
		}
	}
}
