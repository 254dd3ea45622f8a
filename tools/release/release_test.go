package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repositoryWith makes a repository of the files, with a changelog of version 0.2.0,
// and commits them.
func repositoryWith(t *testing.T, files map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git on the PATH")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"VERSION":      "v0.2.0\n",
		"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-22\n",
		"LICENSE":      "Apache-2.0\n",
		"go.work":      "go 1.25.0\n\nuse .\n",
		"go.mod":       "module example.com/m\n\ngo 1.25.0\n",
		"m.go":         "// Package m is the root.\npackage m\n",
	} {
		write(t, root, name, text)
	}
	for name, text := range files {
		write(t, root, name, text)
	}
	gitIn(t, root, "init", "-q")
	commit(t, root)
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
}

func gitIn(t *testing.T, root string, args ...string) {
	t.Helper()
	_, err := git(t.Context(), root, args...)
	require.NoError(t, err)
}

func commit(t *testing.T, root string) {
	t.Helper()
	gitIn(t, root, "add", "-A")
	gitIn(t, root, "-c", "user.name=m", "-c", "user.email=m@example.com", "commit", "-q", "-m", "change")
}

// release runs the program and returns what it prints.
func release(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), &out, root, args)
	return out.String(), err
}

// nested are the files of a repository with a module a, which requires b, a command, and
// examples. They are as one writes new modules: without versions.
func nested() map[string]string {
	const replaced = "\nreplace (\n\texample.com/m => ../\n\texample.com/m/b => ../b\n)\n"
	return map[string]string{
		"a/go.mod": "module example.com/m/a\n\ngo 1.25.0\n\nrequire (\n\texample.com/m v0.0.0\n" +
			"\texample.com/m/b v0.0.0-00010101000000-000000000000\n)\n" + replaced,
		"a/a.go":          "// Package a requires b.\npackage a\n\nimport (\n\t_ \"example.com/m\"\n\t_ \"example.com/m/b\"\n)\n",
		"b/go.mod":        "module example.com/m/b\n\ngo 1.25.0\n\nrequire example.com/m v0.0.0\n\nreplace example.com/m => ../\n",
		"b/b.go":          "// Package b requires the root.\npackage b\n\nimport _ \"example.com/m\"\n",
		"examples/go.mod": "module example.com/m/examples\n\ngo 1.25.0\n\nrequire example.com/m/a v0.0.0\n" + replaced,
		"examples/e.go":   "// Package examples requires a.\npackage examples\n\nimport _ \"example.com/m/a\"\n",
	}
}

func TestTidyConvertsNewModules(t *testing.T) {
	root := repositoryWith(t, nested())
	_, err := release(t, root, "tidy", "-diff")
	require.ErrorIs(t, err, errUntidy)

	_, err = release(t, root, "tidy")
	require.NoError(t, err)
	for name, want := range map[string]string{
		"a/go.mod": "module example.com/m/a\n\ngo 1.25.0\n\nrequire (\n\texample.com/m v0.2.0\n\texample.com/m/b v0.2.0\n)\n",
		"b/go.mod": "module example.com/m/b\n\ngo 1.25.0\n\nrequire example.com/m v0.2.0\n",
		"go.work": `go 1.25.0

use (
	.
	./a
	./b
	./examples
)

// Modules require versions of each other that may not be published yet.
replace (
	example.com/m v0.2.0 => ./
	example.com/m/a v0.2.0 => ./a
	example.com/m/b v0.2.0 => ./b
)
`,
	} {
		assert.Equal(t, want, content(t, root, name))
	}
	dependabot := content(t, root, ".github/dependabot.yml")
	assert.Contains(t, dependabot, "    directories:\n      - /examples\n    schedule:")
	assert.Contains(t, dependabot, "    directories:\n      - /\n      - /a\n      - /b\n    schedule:")
	// The versions exist nowhere, and still everything builds.
	_, err = output(t.Context(), root, []string{"GOPROXY=off", "GOFLAGS="}, "go", "build", "work")
	require.NoError(t, err)

	printed, err := release(t, root, "tidy", "-diff")
	require.NoError(t, err)
	assert.Empty(t, printed)
}

func TestTidyAddsAndRemovesRequirements(t *testing.T) {
	root := repositoryWith(t, nested())
	_, err := release(t, root, "tidy")
	require.NoError(t, err)
	write(t, root, "a/a.go", "// Package a requires b.\npackage a\n\nimport _ \"example.com/m/b\"\n")
	write(t, root, "examples/e.go", "// Package examples requires b.\npackage examples\n\nimport _ \"example.com/m/b\"\n")

	printed, err := release(t, root, "tidy", "-diff")
	require.ErrorIs(t, err, errUntidy)
	assert.Contains(t, printed, "-require example.com/m/a v0.2.0")
	_, err = release(t, root, "tidy")
	require.NoError(t, err)
	assert.Contains(t, content(t, root, "a/go.mod"), "example.com/m v0.2.0 // indirect")
	examples := content(t, root, "examples/go.mod")
	assert.Contains(t, examples, "require example.com/m/b v0.2.0\n")
	assert.NotContains(t, examples, "example.com/m/a ")
}

func TestTidyLowersTestToolsToThoseOfTheRoot(t *testing.T) {
	if testing.Short() {
		t.Skip("asks the module proxy")
	}
	const test = "\n\nimport _ \"go.uber.org/goleak\"\n"
	files := nested()
	files["go.mod"] = "module example.com/m\n\ngo 1.25.0\n\nrequire go.uber.org/goleak v1.2.0\n"
	files["m_test.go"], files["b/b_test.go"], files["examples/e_test.go"] = "package m"+test, "package b"+test, "package examples"+test
	files["b/go.mod"] += "\nrequire go.uber.org/goleak v1.3.0\n"
	files["examples/go.mod"] += "\nrequire go.uber.org/goleak v1.3.0\n"
	root := repositoryWith(t, files)
	_, err := release(t, root, "tidy")
	require.NoError(t, err)
	assert.Contains(t, content(t, root, "b/go.mod"), "go.uber.org/goleak v1.2.0")
	assert.Contains(t, content(t, root, "b/go.sum"), "go.uber.org/goleak v1.2.0 h1:")
	assert.Contains(t, content(t, root, "examples/go.mod"), "go.uber.org/goleak v1.3.0")
}

func TestSetRaisesTheVersionEverywhere(t *testing.T) {
	root := repositoryWith(t, nested())
	printed, err := release(t, root, "set", "-n", "v0.3.0")
	require.NoError(t, err)
	assert.Equal(t, "would change: VERSION\nwould change: go.work\nwould change: .github/dependabot.yml\nwould change: a/go.mod\nwould change: b/go.mod\n"+
		"would change: examples/go.mod\n", printed)
	assert.Equal(t, "v0.2.0\n", content(t, root, "VERSION"))

	_, err = release(t, root, "set", "v0.3.0")
	require.NoError(t, err)
	assert.Equal(t, "v0.3.0\n", content(t, root, "VERSION"))
	for _, name := range []string{"go.work", "a/go.mod", "b/go.mod", "examples/go.mod"} {
		assert.Contains(t, content(t, root, name), "example.com/m")
		assert.NotContains(t, content(t, root, name), "v0.0.0")
	}
	for _, version := range []string{"0.3.0", "v0.3", "v0.3.0+b", "latest", "v2.0.0"} {
		_, err = release(t, root, "set", version)
		require.ErrorContains(t, err, version)
	}
}

func TestTagsComeAfterWhatTheirModulesRequire(t *testing.T) {
	root := repositoryWith(t, nested())
	_, err := release(t, root, "tidy")
	require.NoError(t, err)
	commit(t, root)
	printed, err := release(t, root, "tags")
	require.NoError(t, err)
	assert.Contains(t, printed, "\n  v0.2.0\n  b/v0.2.0\n  a/v0.2.0\n\n")
	assert.Contains(t, printed, "git push --atomic origin v0.2.0 b/v0.2.0 a/v0.2.0\n")
	assert.NotContains(t, printed, "examples")
}

func TestTagsSayEverythingThatIsMissing(t *testing.T) {
	files := nested()
	files["CHANGELOG.md"] = "# Changelog\n\n## [Unreleased]\n"
	files["b/go.mod"] += "\nreplace example.com/x => ../x\n\nexclude example.com/y v1.0.0\n"
	files["a/go.mod"] = strings.Replace(files["a/go.mod"], "require (", "require (\n\texample.com/m/examples v0.0.0\n\texample.com/m/gone v0.0.0", 1)
	root := repositoryWith(t, files)
	write(t, root, "m.go", "package m\n")
	gitIn(t, root, "tag", "b/v0.2.0")

	printed, err := release(t, root, "tags")
	assert.Empty(t, printed)
	for _, missing := range []string{
		`CHANGELOG.md has no section "## [0.2.0]"`,
		"b/go.mod replaces example.com/x", "b/go.mod excludes example.com/y",
		"a/go.mod requires example.com/m/examples, which is not released", "a/go.mod requires example.com/m/gone, which is not released",
		"a/go.mod does not have version v0.2.0: run make tidy",
		"not everything is committed:\n M m.go", "the tag b/v0.2.0 exists",
	} {
		assert.ErrorContains(t, err, missing)
	}
	printed, err = release(t, root, "tags", "-n")
	require.Error(t, err)
	assert.Contains(t, printed, "  a/v0.2.0\n")
}

func TestProxyHasWhatTheTreeHas(t *testing.T) {
	root, dir := repositoryWith(t, nested()), t.TempDir()
	_, err := release(t, root, "proxy", "-version", "v0.9.0", dir)
	require.NoError(t, err)
	folder := filepath.Join(dir, "example.com", "m", "a", "@v")
	assert.Equal(t, "v0.9.0\n", content(t, folder, "list"))
	assert.Contains(t, content(t, folder, "v0.9.0.info"), `"Version":"v0.9.0"`)
	assert.Equal(t, "module example.com/m/a\n\ngo 1.25.0\n\nrequire (\n\texample.com/m v0.9.0\n\texample.com/m/b v0.9.0\n)\n",
		content(t, folder, "v0.9.0.mod"))
	assert.NoDirExists(t, filepath.Join(dir, "example.com", "m", "examples"))

	consumer := t.TempDir()
	write(t, consumer, "go.mod", "module example.com/consumer\n\ngo 1.25.0\n")
	env := []string{"GOPROXY=file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/"), "GOMODCACHE=" + t.TempDir(), "GONOSUMDB=*", "GOWORK=off", "GOFLAGS=-modcacherw"}
	_, err = output(t.Context(), consumer, env, "go", "get", "example.com/m/a@v0.9.0")
	require.NoError(t, err)
	where, err := output(t.Context(), consumer, env, "go", "list", "-m", "-f", "{{.Dir}}", "example.com/m", "example.com/m/a")
	require.NoError(t, err)
	dirs := strings.Fields(where)
	assert.NoFileExists(t, filepath.Join(dirs[0], "a", "a.go"), "it is in another module")
	assert.Equal(t, "Apache-2.0\n", content(t, dirs[1], "LICENSE"), "that of the repository")
	assert.FileExists(t, filepath.Join(dirs[1], "a.go"))
}

func TestWrongCommandLinesAreErrors(t *testing.T) {
	root := repositoryWith(t, nested())
	for _, args := range [][]string{{}, {"publish"}, {"set", "v0.3.0", "v0.4.0"}, {"tidy", "a"}, {"proxy"}, {"tags", "-x"}} {
		_, err := release(t, root, args...)
		require.ErrorIs(t, err, errUsage, args)
	}
	_, err := release(t, root, "oldest", "examples", "c")
	require.ErrorContains(t, err, "examples is not the folder of a module")
	require.ErrorContains(t, err, "c is not the folder of a module")
	_, err = release(t, t.TempDir(), "tags")
	require.ErrorContains(t, err, "no folder above has a file VERSION")
}

func TestModulesInFoldersOfAnotherNameAreErrors(t *testing.T) {
	files := nested()
	files["c/go.mod"] = "module example.com/m/d\n\ngo 1.25.0\n"
	_, err := release(t, repositoryWith(t, files), "tags")
	require.ErrorContains(t, err, "c/go.mod: the module is called example.com/m/d; in this folder it has to be example.com/m/c")
}

func TestOldestRunsTestsWithTheModulesOwnRequirements(t *testing.T) {
	files := nested()
	files["b/b_test.go"] = "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { t.Fatal(\"it ran\") }\n"
	root := repositoryWith(t, files)
	printed, err := release(t, root, "oldest", "a")
	require.NoError(t, err)
	assert.Contains(t, printed, "=== a with the oldest versions")
	printed, err = release(t, root, "oldest")
	require.ErrorContains(t, err, "b: exit status 1")
	assert.Contains(t, printed, "it ran")
	_, err = release(t, root, "oldest", "-run", "None", "b")
	require.NoError(t, err)
}
