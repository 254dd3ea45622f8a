package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

// What a service that is some years old requires, and its program.
const (
	oldGoMod = `module example.com/consumer

go 1.25.0

require (
	github.com/gin-gonic/gin v1.9.1
	github.com/prometheus/client_golang v1.16.0
	github.com/stretchr/testify v1.8.3
	go.etcd.io/etcd/client/v3 v3.5.12
	google.golang.org/grpc v1.64.0
)
`
	oldProgram = `package main

import (
	_ "github.com/gin-gonic/gin"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/stretchr/testify/assert"
	_ "go.etcd.io/etcd/client/v3"
	_ "google.golang.org/grpc"
)

func main() {}
`
)

// Nothing that an old service requires rises when it gets one of the modules. A service
// that uses the framework of a module has what that framework requires.
func (p published) keepOldVersions(t *testing.T) {
	old := p.consumer(t, map[string]string{"go.mod": oldGoMod, "main.go": oldProgram})
	p.goCommand(t, old, "mod", "tidy")
	for _, m := range p.modules {
		if !m.oldest() {
			continue
		}
		t.Run(m.dir, func(t *testing.T) {
			dir := p.consumer(t, map[string]string{
				"go.mod": content(t, old, "go.mod"), "go.sum": content(t, old, "go.sum"), "main.go": oldProgram,
			})
			if frameworks := frameworksOf(m); len(frameworks) > 0 {
				p.goCommand(t, dir, append([]string{"get"}, frameworks...)...)
			}
			before := p.buildList(t, dir)
			p.goCommand(t, dir, "get", m.path()+"@"+p.version)
			requireNothingRose(t, before, p.buildList(t, dir))
		})
	}
	t.Run("all at once build", func(t *testing.T) { p.buildOld(t, old) })
}

// buildOld builds an old service with the modules for the frameworks that it has.
func (p published) buildOld(t *testing.T, old string) {
	before := p.buildList(t, old)
	var packages []string
	for _, dir := range []string{"", "/adapters/gin", "/adapters/grpc", "/metrics/prometheus", "/datasource/etcd", "/fleet/etcd"} {
		module := p.modules[0].path() + dir
		p.goCommand(t, old, "get", module+"@"+p.version)
		packages = append(packages, p.importable(t, old, module)...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(old, "guarded.go"), []byte(strings.Replace(importing(packages), "func main() {}", "", 1)), 0o600))
	p.goCommand(t, old, "mod", "tidy")
	requireNothingRose(t, before, p.buildList(t, old))
	p.goCommand(t, old, "build", "-o", "consumer.exe", ".")
	_, err := output(t.Context(), old, nil, filepath.Join(old, "consumer.exe"))
	require.NoError(t, err)
}

// frameworksOf returns what a module requires and the old service does not, as go get
// takes it.
func frameworksOf(m *module) (queries []string) {
	for _, required := range m.file.Require {
		own := strings.HasPrefix(required.Mod.Path, "github.com/penstock-go/")
		known := isTestTool(required.Mod.Path) || strings.Contains(oldGoMod, required.Mod.Path+" ")
		if !required.Indirect && !own && !known {
			queries = append(queries, required.Mod.String())
		}
	}
	return queries
}

// buildList returns the version of each module that a consumer's programs are built
// with, and of Go.
func (p published) buildList(t *testing.T, dir string) map[string]string {
	versions := map[string]string{"go": "v" + p.goCommand(t, dir, "list", "-m", "-f", "{{.GoVersion}}")}
	for line := range strings.Lines(p.goCommand(t, dir, "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")) {
		if words := strings.Fields(line); len(words) == 2 {
			versions[words[0]] = words[1]
		}
	}
	return versions
}

func requireNothingRose(t *testing.T, before, after map[string]string) {
	t.Helper()
	require.Greater(t, len(before), 10)
	for _, path := range slices.Sorted(maps.Keys(before)) {
		assert.LessOrEqual(t, semver.Compare(after[path], before[path]), 0,
			"%s must stay at %s and is now %s", path, before[path], after[path])
	}
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(text)
}
