package penstock_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ruleKinds are the kinds of rules of this repository.
var ruleKinds = sync.OnceValue(func() (names []string) {
	for _, kind := range rules.NewTable().Definitions() {
		names = append(names, string(kind.Kind()))
	}
	return slices.Clip(names)
})

// eachText calls a function with each page of the docs and with the comments of each file of
// Go code, tests left out.
func eachText(t *testing.T, see func(path, text string)) {
	t.Helper()
	comment := regexp.MustCompile(`(?m)^[ \t]*// ?(.*)$`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || strings.Contains(path, "testdata") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		switch filepath.Ext(path) {
		case ".md":
			text, err := os.ReadFile(path)
			see(path, string(text))
			return err
		case ".go":
			code, err := os.ReadFile(path)
			var lines []string
			for line := range strings.Lines(string(code)) {
				found := comment.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
				if found == nil {
					lines = append(lines, "") // ends a block
					continue
				}
				lines = append(lines, found[1])
			}
			see(path, strings.Join(lines, "\n"))
			return err
		}
		return nil
	}))
}

// blocks returns the blocks of code in a page, or in comments.
func blocks(path, text string) (found []string) {
	if filepath.Ext(path) == ".md" {
		for _, block := range regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```").FindAllStringSubmatch(text, -1) {
			if slices.Contains([]string{"yaml", "json", ""}, block[1]) { // those of other languages end where they end
				found = append(found, block[2])
			}
		}
		return found
	}
	for _, block := range regexp.MustCompile(`(?m)(?:^\t.*\n|^\n)+`).FindAllString(text+"\n", -1) {
		found = append(found, strings.ReplaceAll(block, "\n\t", "\n")[min(1, len(block)):])
	}
	return found
}

// Every document of rules in the docs and in comments is one that the product accepts.
func TestDocumentsInTheDocsAreValid(t *testing.T) {
	inPages, inComments := 0, 0
	eachText(t, func(path, text string) {
		for i, block := range blocks(path, text) {
			for _, document := range documentsIn(block) {
				_, err := rules.Parse(fmt.Sprintf("%s, block %d", path, i+1), []byte(document))
				assert.NoError(t, err, document)
				if filepath.Ext(path) == ".md" {
					inPages++
				} else {
					inComments++
				}
			}
		}
	})
	assert.Greater(t, inPages, 10)
	assert.Positive(t, inComments)
}

// documentsIn returns the rule documents in a block of code: the block itself, if one of its
// keys is a kind of rules, or what it has under the key rules, as unit tests do.
func documentsIn(block string) (documents []string) {
	for part := range strings.SplitSeq(block, "\n---") {
		if !mentionsRules(part) {
			continue // the parser takes its time
		}
		var fields map[string]yaml.Node
		if yaml.Unmarshal([]byte(part), &fields) != nil {
			continue
		}
		if inner, ok := fields["rules"]; ok && inner.Kind == yaml.MappingNode {
			if text, err := yaml.Marshal(&inner); err == nil {
				documents = append(documents, string(text))
			}
			continue
		}
		for _, kind := range ruleKinds() {
			if _, ok := fields[kind]; ok {
				documents = append(documents, part)
				break
			}
		}
	}
	return documents
}

// mentionsRules says whether a text may have a key that is a kind of rules, or rules.
func mentionsRules(text string) bool {
	return slices.ContainsFunc(append(ruleKinds(), "rules"), func(key string) bool { return strings.Contains(text, key) })
}

// Fields of documents that a text names with a value, as in `shadow: true`, exist.
func TestFieldsInTheDocsExist(t *testing.T) {
	inline := regexp.MustCompile("`([^`\n]+)`")
	field := regexp.MustCompile(`(?:^|[{, "(])([a-z]\w*): (\S*)`)
	known := fieldNames()
	others := []string{ // of loads and unit tests, of what they compare with, and of other formats
		"at", "attrs", "blocked", "calls", "each", "grpc", "http", "instances", "name", "passed", "rule", "tenant", "time", "to", "value",
		"clusterMode", "count", "control", "darwin", "etcdserver", "scrape_native_histograms", "app", "endpoints", "line", "penstock",
		"enabled", "shadow_mode", "slidingWindowType", "unlimited", "resources", "mean", "cost", "estimate", "actual", "shape",
	}
	seen := 0
	eachText(t, func(path, text string) {
		if path == "CHANGELOG.md" {
			return // it tells of fields that are gone
		}
		for line := range strings.Lines(text) {
			if filepath.Ext(path) == ".md" {
				for _, code := range inline.FindAllStringSubmatch(line, -1) {
					for _, found := range field.FindAllStringSubmatch(code[1], -1) {
						seen++
						assert.True(t, slices.Contains(known, found[1]) || slices.Contains(others, found[1]), "%s: no field %q: %s", path, found[1], code[1])
					}
				}
				continue
			}
			for _, found := range field.FindAllStringSubmatch(line, -1) {
				if value := strings.TrimRight(found[2], `".,;)}`); value != "true" && value != "false" || strings.Contains(line, value+" if ") {
					continue
				}
				seen++
				assert.True(t, slices.Contains(known, found[1]) || slices.Contains(others, found[1]), "%s: no field %q: %s", path, found[1], line)
			}
		}
	})
	assert.Greater(t, seen, 50)
}

// fieldNames returns the names of the fields that rules have, those within fields too, and
// of the kinds; and those of the domains that are served.
func fieldNames() (names []string) {
	names = []string{"serve", "domain", "attributes"}
	for _, definition := range rules.NewTable().Definitions() {
		names = append(names, string(definition.Kind()))
		names = append(names, fieldsOf(definition)...)
	}
	return names
}

func fieldsOf(definition rule.Definition) (names []string) {
	for _, field := range definition.Fields() {
		names = append(names, strings.Split(field.Path, ".")...)
	}
	return names
}
