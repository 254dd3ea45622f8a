package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

// Released modules require old versions of frameworks. The workspace tests them with the
// newest only if examples/go.mod requires those, so that Dependabot raises them there.
func TestExamplesRequireEveryFrameworkOfTheModules(t *testing.T) {
	repo, err := open(".")
	require.NoError(t, err)
	newest := map[string]string{}
	for _, required := range repo.find(repo.modules[0].path() + "/examples").file.Require {
		if !required.Indirect {
			newest[required.Mod.Path] = required.Mod.Version
		}
	}
	for _, m := range repo.modules {
		if !m.oldest() {
			continue
		}
		for _, required := range m.file.Require {
			if required.Indirect || repo.find(required.Mod.Path) != nil {
				continue
			}
			assert.GreaterOrEqual(t, semver.Compare(newest[required.Mod.Path], required.Mod.Version), 0,
				"%s requires %s: add an import of its newest version to examples/versions.go, and run make tidy", m.modFile(), required.Mod)
		}
	}
}

// Go raises what a consumer says of Go to what its dependencies say. A module whose
// framework needs a newer Go says so: "go 1.26.0 // echo v5 needs it".
func TestModulesNeedTheOldestSupportedGo(t *testing.T) {
	repo, err := open(".")
	require.NoError(t, err)
	for _, m := range repo.modules {
		said := len(m.file.Go.Syntax.Suffix) > 0
		if m.released() && !said {
			assert.Equal(t, repo.modules[0].file.Go.Version, m.file.Go.Version,
				"%s: look for an older version of what needs this Go, or say in a comment on the line what does", m.modFile())
		}
	}
}
