package core_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// Calls that come at one instant share what room there is, and leave none: whoever
// is refused has a window that is full when all have been decided. What a call took
// and had to give back is missed by nobody; of shared windows that overlap, only if
// the scheduler stops the call in between.
func TestNoCallIsRefusedATokenThatAnotherGivesBack(t *testing.T) {
	own := flow.Rule{Name: "own", Match: "*", Limit: 3}
	all := flow.Rule{Name: "all", Match: "*", Shared: true, Limit: 20}
	some := flow.Rule{Name: "some", Match: "[ab]*", Shared: true, Limit: 7, Algorithm: flow.FixedWindow}
	others := flow.Rule{Name: "others", Match: "[bc]*", Shared: true, Limit: 6}
	tests := map[string]struct {
		rules    []flow.Rule
		overlaps bool
	}{
		"a shared window listed first":       {rules: []flow.Rule{all, own}},
		"one for an origin and one for all":  {rules: []flow.Rule{all, own, {Name: "web", Match: "*", Origin: "web", Limit: 2}}},
		"shared windows that overlap":        {[]flow.Rule{all, some, others}, true},
		"shared windows and own ones":        {[]flow.Rule{some, own, others, all}, true},
		"two windows of only some resources": {[]flow.Rule{some, others}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, c := newEngine(t, test.rules...)
			wrong := 0
			for range 300 {
				wrong += callAtOnce(t, e)
				c.Advance(3 * time.Second)
			}
			if test.overlaps {
				wrong -= 300 * 39 / 100
			}
			assert.LessOrEqual(t, wrong, 0, "calls were refused though tokens remained")
		})
	}
}

// callAtOnce makes 39 calls and returns how many were refused though tokens remain.
func callAtOnce(t *testing.T, e *core.Engine) (wrong int) {
	type answer struct {
		resource string
		origin   core.Option
		passed   bool
	}
	answers := make([]answer, 39)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range answers {
		a := &answers[i]
		a.resource, a.origin = fmt.Sprintf("%c%d", 'a'+i%3, i%5), core.Origin([]string{"web", ""}[i%2])
		done.Go(func() {
			start.Wait()
			_, err := e.Entry(context.Background(), a.resource, a.origin)
			a.passed = err == nil
		})
	}
	start.Done()
	done.Wait()
	passed := map[string]float64{}
	for _, a := range answers {
		full := false
		for _, window := range e.Quotas(a.resource, a.origin) {
			full = full || window.Quota.Remaining == 0
			if a.passed && window.Rule.Target().Shared {
				passed[window.Name]++
				require.LessOrEqual(t, passed[window.Name], window.Quota.Limit)
			}
		}
		if !a.passed && !full {
			wrong++
		}
	}
	return wrong
}

// A call that one of its windows refuses takes nothing of the others, not even for a
// moment: the last token of a shared window is there for whoever may have it.
func TestTheLastTokenIsNotMissedWhileOthersAreRefused(t *testing.T) {
	shared := flow.Rule{Name: "shared", Match: "*", Shared: true, Limit: 20}
	tests := map[string][]flow.Rule{
		"by a window of their own":    {shared, {Name: "own", Resource: "loud", Limit: 5}},
		"by a pattern's":              {shared, {Name: "own", Match: "l*", Limit: 5}},
		"by that of an origin":        {shared, {Name: "own", Resource: "loud", Limit: 5, Origin: rule.OtherOrigins}},
		"by a related one":            {shared, {Name: "busy", Resource: "loud", Related: "quiet", Limit: 5}, {Name: "own", Resource: "loud", Limit: 5}},
		"by another shared one":       {shared, {Name: "own", Match: "~lou[dt]", Shared: true, Limit: 5}},
		"by one of several, in a row": {shared, {Name: "much", Resource: "loud", Limit: 500}, {Name: "own", Resource: "loud", Limit: 5}},
	}
	for name, list := range tests {
		t.Run(name, func(t *testing.T) {
			e, c := newEngine(t, list...)
			for range 15 {
				require.Equal(t, 5, enter(e, "loud", 6))
				require.Equal(t, 14, enter(e, "quiet", 14))
				stop := make(chan struct{})
				var loud sync.WaitGroup
				for range 2 {
					loud.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
								enter(e, "loud", 10)
							}
						}
					})
				}
				runtime.Gosched()
				assert.Equal(t, 1, enter(e, "quiet", 1), "it is the twentieth of twenty")
				close(stop)
				loud.Wait()
				c.Advance(3 * time.Second)
			}
		})
	}
}
