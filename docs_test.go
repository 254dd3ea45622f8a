package penstock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
