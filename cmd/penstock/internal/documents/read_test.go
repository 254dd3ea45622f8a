package documents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/rules"
)

// tree makes a directory with the files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, data := range files {
		path := filepath.Join(directory, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	}
	return directory
}

// contents returns documents as a map.
func contents(read []documents.Document) map[string]string {
	all := make(map[string]string)
	for _, d := range read {
		all[d.Name] = string(d.Data)
	}
	return all
}

func TestReadOfADirectoryNamesDocumentsByTheirPathsBelowIt(t *testing.T) {
	directory := tree(t, map[string]string{
		"shop.yaml": "1", "admin.yml": "2", "eu/de/pay.json": "3",
		"README.md": "no", ".hidden.yaml": "no", ".git/config.yaml": "no", "eu/.x.yaml": "no", "yaml": "no",
	})
	read, err := documents.Read(t.Context(), nil, directory)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"shop.yaml": "1", "admin.yml": "2", "eu/de/pay.json": "3"}, contents(read))
	assert.Equal(t, "admin.yml", read[0].Name, "by name")
	assert.Equal(t, filepath.Join(directory, "admin.yml"), read[0].Place)
}

func TestReadAcceptsNamedFilesAndStandardInput(t *testing.T) {
	directory := tree(t, map[string]string{"limits": "1", "sub/b.yaml": "2"})
	read, err := documents.Read(t.Context(), strings.NewReader("3"), filepath.Join(directory, "limits"), filepath.Join(directory, "sub"), "-")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"limits": "1", "b.yaml": "2", "stdin": "3"}, contents(read))
}

func TestReadFollowsLinksToFilesAsInConfigMaps(t *testing.T) {
	directory := tree(t, map[string]string{"..2026/shop.yaml": "1"})
	require.NoError(t, os.Symlink("..2026", filepath.Join(directory, "..data")))
	require.NoError(t, os.Symlink("..data/shop.yaml", filepath.Join(directory, "shop.yaml")))
	read, err := documents.Read(t.Context(), nil, directory)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"shop.yaml": "1"}, contents(read))
}

func TestReadIgnoresNothingSilently(t *testing.T) {
	directory := tree(t, map[string]string{
		"empty/README.md": "", "a/shop.yaml": "", "b/shop.yaml": "", "linked/x.yaml": "", "dangling/x.yaml": "",
	})
	in := func(name string) string { return filepath.Join(directory, name) }
	require.NoError(t, os.Symlink(in("a"), in("linked/more")))
	require.NoError(t, os.Symlink("nowhere", in("dangling/y.yaml")))
	for name, test := range map[string]struct {
		paths []string
		want  string
	}{
		"a path that does not exist":     {[]string{in("nothing")}, "no such file"},
		"a directory without documents":  {[]string{in("empty")}, "holds no documents: their names end in .yaml, .yml, .json"},
		"an empty path":                  {[]string{in("a"), ""}, "a path is empty"},
		"one document twice":             {[]string{in("a"), in("a/../a/shop.yaml")}, "a/shop.yaml is named twice: leave out one"},
		"standard input where is none":   {[]string{"-"}, "stat -: no such file"},
		"a link to a directory":          {[]string{in("linked")}, "more is a link to a directory, which is not followed"},
		"a link that leads nowhere":      {[]string{in("dangling")}, "y.yaml"},
		"a directory named as a file is": {[]string{in("a/shop.yaml") + "/"}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := documents.Read(t.Context(), nil, test.paths...)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestTooLongInputIsAMistake(t *testing.T) {
	read, err := documents.Read(t.Context(), strings.NewReader(strings.Repeat("#", rules.MaxDocumentSize+10)), "-")
	require.NoError(t, err)
	c := documents.Judge(rules.NewTable(), read, documents.Mistakes)
	require.Len(t, c.Problems, 1)
	assert.Contains(t, c.Problems[0].Message, "the most is 1048576")
}

func TestDistinctRejectsTwoDocumentsOfOneName(t *testing.T) {
	directory := tree(t, map[string]string{"a/shop.yaml": "", "b/shop.yaml": "", "b/else.yaml": ""})
	read, err := documents.Read(t.Context(), nil, filepath.Join(directory, "a"), filepath.Join(directory, "b"))
	require.NoError(t, err)
	require.Len(t, read, 3)
	require.ErrorContains(t, documents.Distinct(read), `would both be the document "shop.yaml": rename one, or name the directory above both`)
	require.NoError(t, documents.Distinct(read[:2]))
}
