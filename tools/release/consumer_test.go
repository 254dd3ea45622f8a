package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gomod "golang.org/x/mod/module"
)

var build = flag.Bool("build", false, "require every module alone, and build programs: minutes, where nothing is built yet")

// published is what somebody outside can download: the modules as they are here, in a
// module proxy, with a version that nobody has seen before.
type published struct {
	modules []*module
	version string
	env     []string
}

// publish writes the module proxy. What Go keeps of it in the module cache goes away
// with the test.
func publish(t *testing.T) published {
	t.Helper()
	if testing.Short() {
		t.Skip("asks the module proxy for what modules require")
	}
	repo, err := open(".")
	require.NoError(t, err)
	p := published{version: fmt.Sprintf("%s-test.%d", repo.version, time.Now().UnixNano())}
	for _, m := range repo.modules {
		if m.released() {
			p.modules = append(p.modules, m)
		}
	}
	dir := t.TempDir()
	require.NoError(t, repo.proxy(dir, p.version))

	settings := strings.Split(p.goCommand(t, ".", "env", "GOPROXY", "GOMODCACHE"), "\n")
	cache := settings[1]
	p.env = []string{
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw",
		"GOPROXY=file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/") + "," + settings[0],
		"GONOSUMDB=" + repo.modules[0].path(), "GOPRIVATE=", "GONOPROXY=",
	}
	t.Cleanup(func() { p.forget(t, cache) })
	return p
}

// forget takes the modules out of the module cache.
func (p published) forget(t *testing.T, cache string) {
	for _, m := range p.modules {
		escaped, err := gomod.EscapePath(m.path())
		assert.NoError(t, err)
		assert.NoError(t, os.RemoveAll(filepath.Join(cache, escaped+"@"+p.version)))
		files, err := filepath.Glob(filepath.Join(cache, "cache", "download", escaped, "@v", p.version+".*"))
		assert.NoError(t, err)
		for _, file := range files {
			assert.NoError(t, os.Remove(file))
		}
	}
}

// goCommand runs go in a folder and returns what it prints.
func (p published) goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	text, err := output(t.Context(), dir, p.env, "go", args...)
	require.NoError(t, err)
	return strings.TrimSpace(text)
}

// consumer makes a folder with the files of a module that is called example.com/consumer.
func (p published) consumer(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if files["go.mod"] == "" {
		p.goCommand(t, dir, "mod", "init", "example.com/consumer")
	}
	return dir
}

// importable returns the packages of a module that others can import.
func (p published) importable(t *testing.T, dir, path string) (packages []string) {
	t.Helper()
	for line := range strings.Lines(p.goCommand(t, dir, "list", "-f", "{{.Name}} {{.Module.Path}} {{.ImportPath}}", path+"/...")) {
		words := strings.Fields(line)
		if words[0] != "main" && words[1] == path && !strings.Contains(words[2]+"/", "/internal/") {
			packages = append(packages, words[2])
		}
	}
	return packages
}

// importing is a program that imports packages.
func importing(packages []string) string {
	return "package main\n\nimport (\n\t_ \"" + strings.Join(packages, "\"\n\t_ \"") + "\"\n)\n\nfunc main() {}\n"
}

// Every run requires all modules at once, and the root module alone. What requires each alone and builds
// programs takes minutes where nothing is built or downloaded yet: make consumers runs it.
func TestModulesWorkForOthers(t *testing.T) {
	p := publish(t)
	t.Run("all modules can be required in an empty folder", p.requireAllModules)
	t.Run("a consumer of the root module gets no frameworks", p.consumeRoot)
	if !*build {
		return
	}
	t.Run("every module can be required in an empty folder", p.requireEveryModule)
	t.Run("programs install in an empty folder", p.installPrograms)
	t.Run("what an old consumer requires stays as it is", p.keepOldVersions)
}

func (p published) requireAllModules(t *testing.T) {
	dir := p.consumer(t, nil)
	get := []string{"get"}
	for _, m := range p.modules {
		get = append(get, m.path()+"@"+p.version)
	}
	p.goCommand(t, dir, get...)
	required := p.goCommand(t, dir, "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")
	for _, m := range p.modules {
		assert.Contains(t, required, m.path()+" "+p.version)
	}
}

// requireEveryModule also finds every package that each module needs, with the files that it embeds. It builds none of
// them: make test-oldest compiles and tests the same packages with the same versions.
func (p published) requireEveryModule(t *testing.T) {
	for _, m := range p.modules {
		t.Run(m.dir, func(t *testing.T) {
			dir := p.consumer(t, nil)
			p.goCommand(t, dir, "get", m.path()+"@"+p.version)
			packages := p.importable(t, dir, m.path())
			if len(packages) == 0 {
				t.Skip("a program, which is installed below")
			}
			p.goCommand(t, dir, append([]string{"list", "-deps"}, packages...)...)
		})
	}
}

func (p published) installPrograms(t *testing.T) {
	bin := t.TempDir()
	p.env = append(p.env, "GOBIN="+bin)
	p.goCommand(t, t.TempDir(), "install", p.modules[0].path()+"/cmd/penstock@"+p.version)
	program := filepath.Join(bin, "penstock")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	for argument, want := range map[string]string{
		"--version": p.version,
		"--help":    "Penstock tests rules",
		"example":   "flow:",
	} {
		text, err := exec.CommandContext(t.Context(), program, argument).CombinedOutput()
		require.NoError(t, err, "%s", text)
		assert.Contains(t, string(text), want)
	}
}

const guarding = `package main

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock"
)

func main() {
	guard, err := penstock.Entry(context.Background(), "r")
	fmt.Println(err)
	guard.Exit()
}
`

// A program that imports the root package gets the YAML parser with it, and nothing
// else.
func (p published) consumeRoot(t *testing.T) {
	dir := p.consumer(t, map[string]string{"main.go": guarding})
	p.goCommand(t, dir, "get", p.modules[0].path()+"@"+p.version)
	p.goCommand(t, dir, "mod", "tidy")

	if *build {
		assert.Equal(t, "<nil>", p.goCommand(t, dir, "run", "."))
	}
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(content), " v"), "requirements: Penstock and the YAML parser\n%s", content)
	all := p.goCommand(t, dir, "list", "-m", "-f", "{{.Path}}", "all")
	for _, framework := range []string{"/gin", "/grpc", "/etcd", "/prometheus"} {
		assert.NotContains(t, all, framework)
	}
}
