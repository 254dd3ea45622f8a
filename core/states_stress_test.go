package core_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// Resources that were there when a state was forced and released at the same time agree
// with those that come later.
func TestForcingAndReleasingAtTheSameTimeEndsAlikeEverywhere(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{{Name: "b", Match: "x*", Threshold: 0.5}}}))
	of := core.Scope{Kind: rules.KindBreaker, Rule: "b"}
	passes := func(name string) bool {
		guard, err := e.Entry(t.Context(), name)
		guard.Exit()
		return err == nil
	}
	require.True(t, passes("x1"))
	for range 300 {
		var operators sync.WaitGroup
		for _, state := range []string{breaker.Open, "", breaker.Open, ""} {
			operators.Go(func() { _ = e.Control(of, state) })
		}
		operators.Wait()
		require.Equal(t, passes("x1"), len(e.Explain("x2")) == 1 && e.Explain("x2")[0].State != breaker.Open)
	}
	require.NoError(t, e.Control(of, ""))
	require.True(t, passes("x1"))
}
