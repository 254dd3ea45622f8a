package sentinel_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/rules"
)

// FuzzConvert holds that whatever comes out is a document that says the same.
func FuzzConvert(f *testing.F) {
	samples, err := filepath.Glob("../command/testdata/convert/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, samples)
	for _, sample := range samples {
		data, err := os.ReadFile(sample)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`[{"resource": "r", "count": 1, "regex": true, "strategy": 1, "refResource": "r"}, {"resource": "r", "threshold": 1e9}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := sentinel.Convert(sentinel.File{Name: "fuzz", Data: data})
		for _, finding := range c.Findings {
			assert.Positive(t, finding.Line)
			assert.Positive(t, finding.Column)
			assert.NotEmpty(t, finding.Message)
		}
		document, err := c.YAML()
		if err != nil {
			require.NotErrorAs(t, err, new(rules.Problems), "a set that was converted is sound: %v", errors.Unwrap(err))
			return // too long
		}
		back, err := rules.Parse("fuzz", document)
		require.NoError(t, err)
		assert.Equal(t, c.Rules.WithDefaults().Flow, back.WithDefaults().Flow)
	})
}
