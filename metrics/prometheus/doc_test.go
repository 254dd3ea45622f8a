package penstockprom_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

// The package comment lists every metric that the collector describes, and no other. The
// metrics of a kind of rules may be listed by a pattern, as in penstock_<kind>_state.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	engine := core.New(core.Config{})
	t.Cleanup(engine.Close)
	descs := make(chan *prometheus.Desc, 1000)
	penstockprom.NewCollector(engine, penstockprom.Options{}).Describe(descs)
	penstockprom.NewOutgoingCollector(nil, nil, nil).Describe(descs)
	close(descs)
	described, name := map[string]bool{}, regexp.MustCompile(`fqName: "(\w+)"`)
	for desc := range descs {
		described[name.FindStringSubmatch(desc.String())[1]] = true
	}
	require.Contains(t, described, "penstock_passed_total")

	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^//\t(penstock_\w+)[ {]`).FindAllSubmatch(text, -1) {
		documented[string(found[1])] = true
	}
	for name := range described {
		assert.True(t, documented[name] || isOfKind(engine, name), "%s is not documented", name)
	}
	for name := range documented {
		assert.True(t, described[name], "there is no %s", name)
	}
}
