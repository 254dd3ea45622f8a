package serve_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

// script is a source that delivers changes.
type script chan core.Change

func (script) Name() string { return "script" }

func (s script) Run(ctx context.Context, sink core.Sink) error {
	for {
		select {
		case change := <-s:
			sink.Apply(change)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestRulesThatNeedTheEndOfACallAreRejectedWithTheirLine(t *testing.T) {
	for kind, list := range map[string]string{
		"hotParam":  "{name: r, resource: a, param: user, concurrency: 1}",
		"isolation": "{name: r, resource: a, limit: 1}",
		"breaker":   "{name: r, resource: a, threshold: 0.5, minCalls: 20, openFor: 5s}",
		"adaptive":  "{name: r, resource: a}",
		"fault":     "{name: r, resource: a, abort: {http: 500}, percent: 10, until: 2100-01-01T00:00:00Z}",
	} {
		document := "flow:\n  - {resource: a, limit: 1}\n" + kind + ":\n  - " + list + "\n"
		set, err := rules.Parse("a.yaml", []byte(document))
		require.NoError(t, err, kind)
		var problems rules.Problems
		require.ErrorAs(t, serve.Check(set), &problems, kind)
		require.Len(t, problems, 1, kind)
		assert.Equal(t, 4, problems[0].Line, kind)
		assert.Contains(t, problems[0].Error(), "a.yaml:4:5", kind)
		assert.Contains(t, problems[0].Error(), kind+" rules ", kind)
	}
	served, err := rules.Parse("a.yaml", []byte(`
flow: [{resource: a, limit: 1}]
hotParam: [{resource: a, param: user, limit: 1}]
access: [{resource: a, deny: [192.0.2.0/24]}]
`))
	require.NoError(t, err)
	require.NoError(t, serve.Check(served))
	require.NoError(t, serve.CheckHTTP(served))
	aged, err := rules.Parse("a.yaml", []byte(`
isolation: [{resource: a, limit: 1, maxAge: 10s}]
hotParam: [{resource: a, param: user, concurrency: 1, maxAge: 10s}]
`))
	require.NoError(t, err)
	require.NoError(t, serve.Check(aged), "a client of the rate limit service can end calls")
	var problems rules.Problems
	require.ErrorAs(t, serve.CheckHTTP(aged), &problems)
	assert.Len(t, problems, 2)
}

func TestRulesThatAreNoRateSetNoQuota(t *testing.T) {
	set, err := rules.Parse("a.yaml", []byte(`
flow:
  - {name: window, resource: a, limit: 1}
  - {name: bucket, resource: a, limit: 1, algorithm: tokenBucket}
  - {name: throttle, resource: a, limit: 1, algorithm: throttle}
  - {name: calendar, resource: a, limit: 1, algorithm: fixedWindow}
  - {name: related, resource: a, limit: 1, related: b}
  - {name: cold, resource: a, limit: 1, warmUp: {period: 10s}}
hotParam:
  - {name: user, resource: a, param: user, limit: 1}
  - {name: calls, resource: a, param: user, concurrency: 1}
access: [{name: nets, resource: a, deny: [192.0.2.0/24]}]
`))
	require.NoError(t, err)
	var problems rules.Problems
	require.ErrorAs(t, serve.CheckQuotas(set), &problems)
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Line)
	}
	assert.ElementsMatch(t, []int{6, 7, 8, 11, 12}, lines)
}

func TestSourceKeepsWhatWasInForceOfADocumentThatCannotBeServed(t *testing.T) {
	rejected := make(chan core.Rejection, 10)
	swapped := make(chan core.Swap, 10)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Observer: core.Observer{
		Rejected: func(r core.Rejection) { rejected <- r },
		Swapped:  func(s core.Swap) { swapped <- s },
	}})
	defer engine.Close()
	source := make(script)
	require.NoError(t, engine.Follow(t.Context(), serve.Source(source)))
	first := []core.Document{{Name: "a.yaml", Data: []byte("flow: [{resource: a, limit: 1}]")}}
	source <- core.Change{Complete: true, Documents: first}
	<-swapped
	second := []core.Document{{Name: "a.yaml", Data: []byte("flow: [{resource: a, limit: 9}]\nisolation:\n- {resource: a, limit: 1}")}}
	source <- core.Change{Complete: true, Documents: second}
	r := <-rejected
	assert.Equal(t, "a.yaml", r.Document)
	assert.ErrorContains(t, r.Err, "a.yaml:3:3")
	require.NoError(t, second[0].Err, "the documents of the source were changed")
	assert.Equal(t, 1, engine.Status().Rules)
	assert.Equal(t, "flow", string(engine.Snapshot().Resources[0].Rules[0].Kind))
	source <- core.Change{Complete: true, Documents: []core.Document{{Name: "a.yaml", Data: []byte("flow: [{limit: }]")}}}
	assert.ErrorContains(t, (<-rejected).Err, "limit", "mistakes are those that the engine finds")
}
