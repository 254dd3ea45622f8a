package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func BenchmarkParse10000Rules(b *testing.B) {
	for name, row := range map[string]string{
		"Resources": `{"resource": "orders:%d", "limit": 100, "algorithm": "throttle", "maxWait": "1s"}`,
		"Globs":     `{"match": "orders:[a-z]*:%d", "limit": 9, "burst": 12, "algorithm": "tokenBucket"}`,
		"Regexps":   `{"match": "~^orders:(get|put):%d$", "limit": 100, "algorithm": "fixedWindow"}`,
	} {
		var rows []string
		for i := range 10_000 {
			rows = append(rows, fmt.Sprintf(row, i))
		}
		b.Run(name+"/JSON", func(b *testing.B) { benchmarkParse(b, `{"flow": [`+strings.Join(rows, ",\n")+"]}") })
		b.Run(name+"/YAML", func(b *testing.B) { benchmarkParse(b, "flow:\n- "+strings.Join(rows, "\n- ")) })
	}
}

func benchmarkParse(b *testing.B, document string) {
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		set, err := rules.Parse("bench", []byte(document))
		require.NoError(b, err)
		require.Equal(b, 10_000, set.Len())
	}
}

func BenchmarkDiff10000Rules(b *testing.B) {
	var from, to strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&from, "- {resource: orders:%d, limit: 100}\n", i)
		fmt.Fprintf(&to, "- {resource: orders:%d, limit: 200}\n", i+1)
	}
	one, err := rules.Parse("from", []byte("flow:\n"+from.String()))
	require.NoError(b, err)
	other, err := rules.Parse("to", []byte("flow:\n"+to.String()))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		require.Len(b, rules.Diff(one, other), 10_001)
	}
}

func BenchmarkYAMLOf10000Rules(b *testing.B) {
	var set rules.Set
	for i := range 10_000 {
		set.Flow = append(set.Flow, flow.Rule{Resource: fmt.Sprint("orders:", i), Limit: 100})
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := set.YAML()
		require.NoError(b, err)
	}
}
