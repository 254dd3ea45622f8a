package penstock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every claim of the page on faults names tests: they are there.
func TestFaultsAreProvedByTestsThatExist(t *testing.T) {
	tests, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(code, -1) {
			tests[string(found[1])] = true
		}
		return err
	}))
	page, err := os.ReadFile("docs/what-happens-when.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		assert.True(t, tests[string(name[1])], "there is no %s", name[1])
	}
}

// Links between pages, and to headings, lead somewhere.
func TestLinksOfTheDocsResolve(t *testing.T) {
	fenced, heading := regexp.MustCompile("(?s)```.*?```"), regexp.MustCompile(`(?m)^#+ (.*)$`)
	link, punctuation := regexp.MustCompile(`\]\(([^)]+)\)`), regexp.MustCompile(`[^\pL\pN _-]`)
	pages, anchors := map[string]string{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		pages[path] = fenced.ReplaceAllString(string(text), "")
		for _, found := range heading.FindAllStringSubmatch(pages[path], -1) {
			title := punctuation.ReplaceAllString(strings.ToLower(found[1]), "")
			anchors[path+"#"+strings.ReplaceAll(title, " ", "-")] = true
		}
		return err
	}))
	require.NotEmpty(t, anchors)
	for path, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			file, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "linked from %s", path)
			assert.True(t, anchor == "" || anchors[target+"#"+anchor], "%s: there is no %s", path, found[1])
		}
	}
}

// Prose is wrapped at 120 columns. Tables, code and what programs write are not.
func TestProseOfTheDocsIsWrapped(t *testing.T) {
	generated := regexp.MustCompile(`(?s)<!-- (bench:\w+) -->.*?<!-- /bench`)
	pages := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || strings.Contains(path, "testdata") {
			return err
		}
		pages++
		text, err := os.ReadFile(path)
		isCode := false
		for line := range strings.Lines(generated.ReplaceAllString(string(text), "")) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				isCode = !isCode
			}
			if !isCode && !strings.HasPrefix(line, "|") {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), 120, "%s: wrap at 120 columns: %s", path, line)
			}
		}
		return err
	}))
	require.Greater(t, pages, 10)
}
