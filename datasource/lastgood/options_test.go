package lastgood_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

func TestInvalidOptionsAreErrors(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for says, change := range map[string]func(*lastgood.Options) core.Source{
		"Options.Path is empty: name the file":             func(o *lastgood.Options) core.Source { o.Path = ""; return newScript() },
		directory + " is a directory: name a file in it":   func(o *lastgood.Options) core.Source { o.Path = directory; return newScript() },
		"the directory of the copy must exist: stat /none": func(o *lastgood.Options) core.Source { o.Path = "/none/copy"; return newScript() },
		file + " is not a directory":                       func(o *lastgood.Options) core.Source { o.Path = file + "/copy"; return newScript() },
		"Options.App is empty":                             func(o *lastgood.Options) core.Source { o.App = ""; return newScript() },
		"Options.SourceTimeout is negative":                func(o *lastgood.Options) core.Source { o.SourceTimeout = -1; return newScript() },
		"Options.Interval is negative":                     func(o *lastgood.Options) core.Source { o.Interval = -1; return newScript() },
		"the source is nil":                                func(*lastgood.Options) core.Source { return nil },
	} {
		options := lastgood.Options{Path: filepath.Join(directory, "copy"), App: "shop", SourceTimeout: time.Second}
		source := change(&options)
		kept, err := lastgood.Keep(source, options)
		require.ErrorContains(t, err, "lastgood: ")
		require.ErrorContains(t, err, says)
		assert.Nil(t, kept)
	}
}

func TestRelativePathIsResolvedAtTheStart(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	savedBy(t, "rules.copy", twoDocuments())
	assert.NotNil(t, saved(t, filepath.Join(here, "rules.copy")))
}
