package holdfast_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// brokenLinks finds links between documents that lead to no file, or to no heading of one.
func brokenLinks(s *source) []string {
	if path.Ext(s.path) != ".md" {
		return nil
	}
	var found []string
	for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(s.text, -1) {
		file, anchor, _ := strings.Cut(link[1], "#")
		if strings.Contains(file, "://") {
			continue
		}
		text := s.text
		if file != "" {
			data, err := os.ReadFile(path.Join(s.folder(), file))
			if err != nil {
				found = append(found, fmt.Sprintf("links to %s: %v", link[1], err))
				continue
			}
			text = string(data)
		}
		if anchor != "" && !hasHeading(text, anchor) {
			found = append(found, fmt.Sprintf("links to %s, which is no heading there", link[1]))
		}
	}
	return found
}

// hasHeading says whether a document has a heading that an anchor names, as GitHub makes them.
func hasHeading(text, anchor string) bool {
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line {
			title = dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			if strings.ReplaceAll(title, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

// missingFiles finds Go files that a document of the root names by path, and that are not there.
func missingFiles(s *source) []string {
	if path.Ext(s.path) != ".md" || s.folder() != "." {
		return nil
	}
	var found []string
	for _, name := range regexp.MustCompile("`([a-z./]+/[a-z_]+\\.go)`").FindAllStringSubmatch(s.text, -1) {
		if _, err := os.Stat(name[1]); err != nil {
			found = append(found, fmt.Sprintf("names %s: %v", name[1], err))
		}
	}
	return found
}

// missingFunctions finds functions that a document of the root names behind a Go file, and that the
// file does not declare.
func missingFunctions(s *source) []string {
	if path.Ext(s.path) != ".md" || s.folder() != "." {
		return nil
	}
	var found []string
	for _, at := range regexp.MustCompile("`([a-z./]+/[a-z_]+\\.go)`\\s+\\(`(\\w+)`\\)").FindAllStringSubmatch(s.text, -1) {
		text, _ := os.ReadFile(at[1]) // missingFiles tells of a file that is not there
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + at[2] + `\(`).Match(text) {
			found = append(found, fmt.Sprintf("names %s of %s, which does not declare it", at[2], at[1]))
		}
	}
	return found
}

func TestFilesThatDocumentsOfTheRootNameAreThere(t *testing.T) { enforce(t, missingFiles) }

func TestMissingFilesAreFound(t *testing.T) {
	prove(t, missingFiles, map[string]planted{
		"no file": {"x.md", "see `broker/nowhere.go` first\n", "names broker/nowhere.go"},
		"a file":  {"x.md", "see `broker/machine.go` first\n", ""},
	})
}

func TestFunctionsThatDocumentsOfTheRootNameAreThere(t *testing.T) { enforce(t, missingFunctions) }

func TestMissingFunctionsAreFound(t *testing.T) {
	prove(t, missingFunctions, map[string]planted{
		"no function": {"x.md", "see `broker/machine.go` (`Fly`)\n", "names Fly of broker/machine.go"},
		"no file":     {"x.md", "see `broker/nowhere.go` (`New`)\n", "names New of broker/nowhere.go"},
		"wrapped":     {"x.md", "see `broker/machine.go`\n  (`Fly`)\n", "names Fly"},
		"a function":  {"x.md", "see `broker/machine.go` (`New`)\n", ""},
		"a method":    {"x.md", "see `broker/machine.go` (`Take`)\n", ""},
	})
}

// maxReadmeLines keeps the README a door: what only an operator needs is in OPERATION.md.
const maxReadmeLines = 220

func TestTheReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > maxReadmeLines {
		t.Errorf("README.md has %d lines, at most %d", n, maxReadmeLines)
	}
}

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) { enforce(t, brokenLinks) }

func TestBrokenLinksAreFound(t *testing.T) {
	prove(t, brokenLinks, map[string]planted{
		"no file":              {"fuzz/x.md", "see [x](x.go)\n", "links to x.go"},
		"no heading":           {"x.md", "# One\n\nsee [two](#two)\n", "#two, which is no heading"},
		"no heading there":     {"x.md", "[x](README.md#nowhere-at-all)\n", "no heading"},
		"a file and a heading": {"fuzz/x.md", "## When is it, then?\n[a](../LICENSE), [b](#when-is-it-then)\n", ""},
		"a site":               {"x.md", "[x](https://example.org/x)\n", ""},
		"no document":          {"x.go", "package x // a[1](2)\n", ""},
	})
}
