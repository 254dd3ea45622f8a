package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

func TestTargetsSayWhatWasMissedAndWhatWasNotMeasured(t *testing.T) {
	r := resultsOf(t, `
BenchmarkOneRulePassing/rate.Allow/serial 1 100 ns/op
BenchmarkOneRulePassing/rate.Allow/serial-2 1 100 ns/op
BenchmarkOneRulePassing/penstock/serial 1 125 ns/op
BenchmarkOneRulePassing/penstock/serial-2 1 126 ns/op
BenchmarkEntryAndExit/no-rule/entry 1 60 ns/op
BenchmarkEntryAndExit/isolation/entry 1 85 ns/op
BenchmarkEntryAndExit/breaker/entry 1 85 ns/op
BenchmarkLimitIsolationAndBreaker/penstock/serial-2 1 200 ns/op
BenchmarkLimitIsolationAndBreaker/sentinel/serial-2 1 1600 ns/op
BenchmarkLimitIsolationAndBreaker/failsafe-executor/serial-2 1 799.8 ns/op
`)
	tables := r.targets()
	require.Len(t, tables, 1)
	rows := make(map[string][]string)
	for _, row := range tables[0].Rows {
		rows[row[0]] = row[1:]
	}
	assert.Equal(t, map[string][]string{
		"flow: a call passes":                     {"at most 1.25 × rate.Allow", "1.25", "1.26 (missed)"},
		"flow: a call passes, coarse clock":       {"at most 0.6 × rate.Allow", "–", "–"},
		"flow: a call is refused":                 {"at most 0.75 × rate.Allow", "–", "–"},
		"isolation: Entry":                        {"at most 25 ns more", "25.0", "–"},
		"isolation: Exit":                         {"at most 25 ns more", "–", "–"},
		"breaker, closed: Entry":                  {"at most 20 ns more", "25.0 (missed)", "–"},
		"breaker, closed: Exit":                   {"at most 30 ns more", "–", "–"},
		"breaker, open: a call is refused":        {"at most 0.6 × rate.Allow", "–", "–"},
		"adaptive: Entry":                         {"at most 30 ns more", "–", "–"},
		"adaptive: Exit":                          {"at most 30 ns more", "–", "–"},
		"adaptive, overloaded: a call is refused": {"at most 0.75 × rate.Allow", "–", "–"},

		"hotParam, 10,000 values: a call passes":    {"at most 1.5 × rate.Allow", "–", "–"},
		"hotParam, a million values: a call passes": {"at most 2.5 × rate.Allow", "–", "–"},
		"hotParam: a call is refused":               {"at most 1 × rate.Allow", "–", "–"},

		"breaker, open: a call is refused, coarse clock":             {"at most 0.6 × rate.Allow", "–", "–"},
		"adaptive, overloaded: a call is refused, coarse clock":      {"at most 0.75 × rate.Allow", "–", "–"},
		"hotParam, 10,000 values: a call passes, Engine.Resource":    {"at most 1.5 × rate.Allow", "–", "–"},
		"hotParam, 10,000 values: a call passes, coarse clock":       {"at most 1.5 × rate.Allow", "–", "–"},
		"hotParam, a million values: a call passes, Engine.Resource": {"at most 2.5 × rate.Allow", "–", "–"},
		"hotParam, a million values: a call passes, coarse clock":    {"at most 2.5 × rate.Allow", "–", "–"},
		"hotParam: a call is refused, coarse clock":                  {"at most 1 × rate.Allow", "–", "–"},

		"all three: sentinel":          {"at least 8 × penstock", "–", "8.00"},
		"all three: failsafe-executor": {"at least 4 × penstock", "–", "4.00 (missed)"},
	}, rows)
}

// To choose the value of a call takes time too, which is in both of what is compared.
func TestCallsWithValuesAreComparedInTheirOwnLoop(t *testing.T) {
	r := resultsOf(t, `
BenchmarkOneRulePassing/rate.Allow/serial 1 100 ns/op
BenchmarkHotMillionValues/rate.Allow/serial 1 125 ns/op
BenchmarkHotMillionValues/penstock/serial 1 250 ns/op
BenchmarkHotScan/penstock/serial 1 250 ns/op
`)
	compared := func(scenario string) string {
		return r.compared(key{scenario: scenario, subject: peer.Baseline, variant: "serial", cores: 1})[2]
	}
	assert.Equal(t, "2.00", compared("HotMillionValues"))
	assert.Equal(t, "2.50", compared("HotScan"))
	for _, row := range r.targets()[0].Rows {
		if row[0] == "hotParam, a million values: a call passes" {
			assert.Equal(t, "2.00", row[2])
		}
	}
}

func TestResultsWithoutAnyTargetHaveNoTable(t *testing.T) {
	assert.Empty(t, resultsOf(t, "\nBenchmarkGrowth/rules=1/serial 1 100 ns/op\n").targets())
}

func TestTargetsAreOfBenchmarksThatExist(t *testing.T) {
	files, err := filepath.Glob("../../*_bench_test.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		source.Write(data)
	}
	for _, target := range targets() {
		assert.Contains(t, source.String(), "func Benchmark"+target.measured.scenario+"(b *testing.B)")
		assert.Contains(t, source.String(), "func Benchmark"+target.other.scenario+"(b *testing.B)")
	}
}

func TestTargetsAreOfSubjectsThatExist(t *testing.T) {
	inLoopOfValues := names(append(peer.ValueLimiters(), peer.RateForAll()), func(l peer.ValueLimiter) string { return l.Name })
	subjects := map[string][]string{
		"OneRulePassing": names(append(peer.Limiters(peer.Settings{}), peer.PenstockVariants(peer.Settings{})...),
			func(l peer.Limiter) string { return l.Name }),
		"OneRuleBlocking":          names(peer.Limiters(peer.Settings{}), func(l peer.Limiter) string { return l.Name }),
		"EntryAndExit":             names(peer.PenstockRules(), func(r peer.PenstockRule) string { return r.Name }),
		"BreakerOpen":              names(peer.Breakers(), func(p peer.Protection) string { return p.Name }),
		"HotTenThousandValues":     inLoopOfValues,
		"HotMillionValues":         inLoopOfValues,
		"HotOneValueBlocking":      names(peer.ValueLimiters(), func(l peer.ValueLimiter) string { return l.Name }),
		"AdaptiveRefusing":         names(peer.Adaptives(), func(p peer.Protection) string { return p.Name }),
		"LimitIsolationAndBreaker": names(peer.Compositions(), func(p peer.Protection) string { return p.Name }),
	}
	for _, target := range targets() {
		for _, k := range []key{target.measured, target.other} {
			assert.Contains(t, subjects[k.scenario], k.subject, k.scenario)
		}
	}
}

func names[T any](list []T, name func(T) string) (names []string) {
	for _, one := range list {
		names = append(names, name(one))
	}
	return names
}

func resultsOf(t *testing.T, text string) *results {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.txt")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	r, err := read([]string{file})
	require.NoError(t, err)
	return r
}
