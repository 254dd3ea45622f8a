package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/rules"
)

// FuzzConvert checks that every conversion makes a valid document with the same rules.
func FuzzConvert(f *testing.F) {
	samples, err := filepath.Glob("../command/testdata/convert/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, samples)
	for _, sample := range samples {
		data, err := os.ReadFile(sample)
		require.NoError(f, err)
		f.Add(data)
	}
	for _, seed := range []string{
		`{"resource": "r", "count": 1, "regex": true, "strategy": 1, "refResource": "r"}, {"resource": "r", "threshold": 1e9}`,
		`{"resource": "r", "count": 1, "grade": 0}, {"resource": "r", "metricType": 0, "threshold": 3, "id": "x"}`,
		`{"resource": "r", "count": 0.5, "grade": 1, "timeWindow": 1}, {"resource": "r", "grade": 0, "count": 9.5, "timeWindow": 1, "regex": true}`,
		`{"resource": "r", "strategy": 2, "threshold": 9, "statIntervalMs": 1000, "retryTimeoutMs": 1, "probeNum": 2}`,
	} {
		f.Add([]byte("[" + seed + "]"))
	}
	for _, seed := range []string{
		`"metricType": 1, "threshold": 3, "durationInSec": 1, "burstCount": 1, "paramIndex": -1, "specificItems": [{"valKind": 1, "valStr": "~a/*", "threshold": 1}, {"valKind": 0, "valStr": "-07", "threshold": 2}, {"valKind": 2, "valStr": "T"}]`,
		`"metricType": 0, "threshold": 3, "paramKey": "a\tb", "specificItems": [{"valKind": 1, "valStr": "", "threshold": 0}]`,
		`"paramIdx": 0, "count": 3.5, "regex": true, "controlBehavior": 2, "maxQueueingTimeMs": 5, "paramFlowItemList": [{"object": 7, "count": 1e300, "classType": "int"}, {"object": "\u2028", "count": 2}]`,
		`"count": 2, "intervalSec": 1, "controlBehavior": 2, "paramItem": {"parseStrategy": 2, "fieldName": "T", "pattern": "[a-", "matchStrategy": 2}`,
		`"count": 2, "interval": 1, "intervalUnit": 3, "grade": 0, "paramItem": {"parseStrategy": 1, "pattern": "A?*", "matchStrategy": 3}`,
		`"count": 2, "resourceMode": 1, "burst": 3`,
		`"limitApp": "a, ~b,*", "strategy": 1`, `"limitApp": "a", "regex": true`,
	} {
		f.Add([]byte(`[{"resource": "r", ` + seed + `}]`))
	}
	for _, name := range []string{"envoy.yaml", "nginx.conf", "application.yml"} {
		data, err := os.ReadFile("../command/testdata/convert/others/" + name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := convert.Convert(convert.File{Name: "fuzz", Data: data})
		for _, finding := range c.Findings {
			assert.Positive(t, finding.Line)
			assert.Positive(t, finding.Column)
			assert.NotEmpty(t, finding.Message)
		}
		document, err := c.YAML()
		if err != nil {
			require.NotErrorAs(t, err, new(rules.Problems), "a converted set is valid: %v", errors.Unwrap(err))
			return // too long
		}
		back, err := rules.Parse("fuzz", document)
		require.NoError(t, err)
		complete := func(set rules.Set) rules.Set { return rules.NewTable().WithRules(set, set.All()) }
		want, got := complete(c.Rules), complete(back)
		assert.Equal(t, want.Flow, got.Flow)
		assert.Equal(t, want.Isolation, got.Isolation)
		assert.Equal(t, want.Breaker, got.Breaker)
		assert.Equal(t, want.HotParam, got.HotParam)
		assert.Equal(t, want.Access, got.Access)
	})
}
