package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

const everyField = `# The ceilings of the shop.
flow:
  - name: create-qps
    resource: orders:create
    limit: 1000
    window: 2s
    algorithm: slidingWindow
    buckets: 20
    strict: true
    control: reject
    warmUp: {period: 10s, coldFactor: 4, step: 500ms}

  - resource: orders:pay
    limit: 2.5
    algorithm: throttle
    maxWait: 500ms

  - match: "orders:*"
    perResource: false
    limit: 100
    algorithm: tokenBucket
    burst: 150
    overdraft: true
    maxWait: 1s
    origin: mobile
    shadow: true

  - name: reads-yield
    match: ~^orders:(get|list)$
    limit: 50
    window: 1m
    algorithm: fixedWindow
    related: orders:create
`

const everyFieldJSON = `{
  "flow": [
    {
      "name": "create-qps",
      "resource": "orders\u003acreate",
      "limit": 1e3,
      "window": "2s",
      "algorithm": "slidingWindow",
      "buckets": 20,
      "strict": true,
      "control": "reject",
      "warmUp": {"period": "10s", "coldFactor": 4, "step": "500ms"}
    }, {"resource": "orders:pay", "limit": 2.5, "algorithm": "throttle", "maxWait": "500ms"},
    {"match": "orders:*", "perResource": false, "limit": 100, "algorithm": "tokenBucket", "burst": 150,
      "overdraft": true, "maxWait": "1s", "origin": "mobile", "shadow": true},
    {"name": "reads-yield", "match": "~^orders:(get|list)$", "limit": 50, "window": "1m", "algorithm": "fixedWindow",
      "related": "orders:create"}
  ]
}`

func everyFieldRules() []flow.Rule {
	return []flow.Rule{
		{
			Name: "create-qps", Resource: "orders:create", Limit: 1000, Window: 2 * time.Second,
			Algorithm: flow.SlidingWindow, Buckets: 20, Strict: true,
			WarmUp: flow.WarmUp{Period: 10 * time.Second, ColdFactor: 4, Step: 500 * time.Millisecond},
		},
		{
			Name: "orders:pay", Resource: "orders:pay", Limit: 2.5, Window: time.Second,
			Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond,
		},
		{
			Name: "orders:*", Match: "orders:*", Shared: true, Limit: 100, Window: time.Second,
			Algorithm: flow.TokenBucket, Burst: 150, Overdraft: true, MaxWait: time.Second,
			Origin: "mobile", Shadow: true,
		},
		{
			Name: "reads-yield", Match: "~^orders:(get|list)$", Limit: 50, Window: time.Minute,
			Algorithm: flow.FixedWindow, Related: "orders:create",
		},
	}
}

func TestParseReadsEveryField(t *testing.T) {
	for name, document := range map[string]string{
		"YAML":                everyField,
		"JSON":                everyFieldJSON,
		"YAML with CRLF":      strings.ReplaceAll(everyField, "\n", "\r\n"),
		"YAML with CR":        strings.ReplaceAll(everyField, "\n", "\r"),
		"YAML with markers":   "---\n" + everyField + "...\n# The end.\n",
		"YAML with a BOM":     "\ufeff" + everyField,
		"JSON with a BOM":     "\ufeff\r\n" + everyFieldJSON,
		"JSON on one line":    strings.ReplaceAll(everyFieldJSON, "\n", ""),
		"JSON with a comment": everyFieldJSON + " # which makes it YAML",
		"JSON with tabs":      strings.ReplaceAll(everyFieldJSON, "  ", "\t"),
		"YAML that looks like JSON": `{"flow": [
			{name: create-qps, resource: "orders:create", limit: 1000, window: 2s, buckets: 20, strict: True,
				"warmUp": {period: 10s, coldFactor: 4, step: 500ms,},},
			{"resource":"orders:pay","limit":2.5,algorithm: throttle, "maxWait":500ms},
			{match: "orders:*", perResource: False, limit: 100, algorithm: tokenBucket, burst: 150, overdraft: TRUE, maxWait: 1000ms,
				origin: mobile, shadow: true},
			{"name":"reads-yield",match: '~^orders:(get|list)$', limit: 50, window: 60s, algorithm: fixedWindow, related: "orders:create"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			set, err := rules.Parse("shop.yaml", []byte(document))
			require.NoError(t, err)
			assert.Equal(t, everyFieldRules(), set.Flow)
		})
	}
}

func TestParseTellsWhereRulesStand(t *testing.T) {
	for _, c := range []struct {
		name, document string
		first, second  string
	}{
		{"YAML", everyField, "shop:3:5", "shop:13:5"},
		{"YAML with CRLF", strings.ReplaceAll(everyField, "\n", "\r\n"), "shop:3:5", "shop:13:5"},
		{"YAML with a BOM", "\ufeff" + `flow: [{resource: create-qps, limit: 1}, {resource: "orders:pay", limit: 1}]`, "shop:1:8", "shop:1:42"},
		{"JSON", everyFieldJSON, "shop:3:5", "shop:13:8"},
		{"wide characters", "{flow: [{resource: create-qps, limit: 1}, # 日本\n {name: '日本', resource: b, limit: 1}, {resource: 'orders:pay', limit: 1}]}", "shop:1:9", "shop:2:39"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := rules.Parse("shop", []byte(c.document))
			require.NoError(t, err)
			for name, want := range map[string]string{"create-qps": c.first, "orders:pay": c.second} {
				at, ok := set.Position(rules.KindFlow, name)
				assert.True(t, ok, name)
				assert.Equal(t, want, at.String(), name)
			}
			_, ok := set.Position(rules.KindFlow, "orders:create")
			assert.False(t, ok, "a resource is no name")
		})
	}
}

func TestParseAcceptsADocumentThatSaysItHasNoRules(t *testing.T) {
	for _, document := range []string{"flow: []", "{}", "{ }\n", `{"flow": []}`, "--- {}", "flow:\n  []\n...\n"} {
		set, err := rules.Parse("none.yaml", []byte(document))
		require.NoError(t, err, document)
		assert.Zero(t, set.Len(), document)
	}
}

func TestParseKeepsNothingOfTheData(t *testing.T) {
	data := []byte(everyField)
	set, err := rules.Parse("shop.yaml", data)
	require.NoError(t, err)
	clear(data)
	assert.Equal(t, everyFieldRules(), set.Flow)
}

func TestParseReadsADocumentOfTheGreatestSize(t *testing.T) {
	data := []byte("flow: []\n#")
	data = append(data, strings.Repeat("x", rules.MaxDocumentSize-len(data))...)
	_, err := rules.Parse("long.yaml", data)
	require.NoError(t, err)
}
