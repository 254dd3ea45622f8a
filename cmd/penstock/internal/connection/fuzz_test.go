package connection_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

// Every settings file results in valid settings or an error.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "app: a", "app: [a]", "- a", "endpoints: [a:1, 'b:2']", "app: &x a\nprefix: *x", "? [a]\n: b", "<<: {app: a}", "app: a\n---\napp: b", "user: a:b:c",
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		flags := pflag.NewFlagSet("fuzz", pflag.ContinueOnError)
		connection.AddFlags(flags)
		require.NoError(t, flags.Parse([]string{"--config", path}))
		s, err := connection.Find(t.Context(), flags, func(string) string { return "" })
		if err == nil {
			assert.NotEmpty(t, s.Keys.Documents)
			assert.NotEmpty(t, s.Endpoints)
		}
	})
}
