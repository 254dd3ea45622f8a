package scenario_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
)

// The loads of the scenes that soak/overload runs are load files: users can take them over.
func TestLoadsOfScenesAreLoadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../internal/overload/scenes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		var scene struct{ Load yaml.Node }
		require.NoError(t, yaml.Load(text, &scene), name)
		load, err := yaml.Dump(&scene.Load)
		require.NoError(t, err)
		_, err = scenario.ParseLoad(name, load)
		assert.NoError(t, err, name)
	}
}
