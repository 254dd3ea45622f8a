package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	esbuild "github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files of the page that are served are made of those in the directory page. UPDATE_GOLDEN=1 makes them anew.
func TestPageIsMadeOfItsSources(t *testing.T) {
	result := esbuild.Build(esbuild.BuildOptions{
		EntryPoints: []string{"page/app.js", "page/style.css"}, Outdir: "assets", Bundle: true, External: []string{"./editor.js"},
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		Format: esbuild.FormatESModule, Target: esbuild.ES2022, Charset: esbuild.CharsetUTF8, Metafile: true,
	})
	require.Empty(t, result.Errors)
	require.Empty(t, result.Warnings)
	sources, err := filepath.Glob("page/*")
	require.NoError(t, err)
	for _, source := range sources {
		assert.Contains(t, result.Metafile, `"`+filepath.ToSlash(source)+`"`, "one that nobody imports would be left out in silence")
	}
	require.Len(t, result.OutputFiles, 2)
	for _, file := range result.OutputFiles {
		name := "assets/" + filepath.Base(file.Path)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			require.NoError(t, os.WriteFile(name, file.Contents, 0o644))
		}
		present, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(file.Contents), string(present), "run make console-page")
	}
}

// The logo is a part of the page, which is painted without a request for it, and a file for the icon.
func TestPageHasItsLogo(t *testing.T) {
	page, err := os.ReadFile("assets/index.html")
	require.NoError(t, err)
	logo, err := os.ReadFile("assets/logo.svg")
	require.NoError(t, err)
	_, drawing, _ := strings.Cut(strings.TrimSpace(string(logo)), ">")
	assert.Contains(t, string(page), drawing)
}
