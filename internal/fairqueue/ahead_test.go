package fairqueue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// pushCosting has a call of a tenant wait that costs so much.
func pushCosting(q *queue, tenant int, weight float64, isKnown bool, cost int64) *call {
	c := &call{index: tenant, tenant: key(tenant)}
	c.node.Cost = cost
	q.Push(c, &c.node, c.tenant, weight, isKnown)
	return c
}

// servedBefore serves all calls up to one, and returns what those before it cost.
func servedBefore(t require.TestingT, q *queue, last *call) (work int64) {
	for {
		c := q.First()
		require.NotNil(t, c)
		cost := c.node.Cost
		q.Learn(cost)
		q.Serve(&c.node, cost)
		if c == last {
			return work
		}
		work += cost
	}
}

func TestNoMoreIsServedBeforeACallThanIsSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := fairqueue.New[call](1 << 10)
		most := int64(1) << rapid.IntRange(1, 30).Draw(t, "most")
		tenants := rapid.SampledFrom([]int{1, 2, 10, 60, 200}).Draw(t, "tenants")
		floods := rapid.IntRange(0, 100).Draw(t, "percent of unknown")
		weights := rapid.SampledFrom([][]float64{{1}, {1, 4}, {0.01, 1, 1000}}).Draw(t, "weights")
		r := random(rapid.Uint64().Draw(t, "seed"))
		changed := 0
		one := func() (tenant int, weight float64, isKnown bool, cost int64) {
			tenant = r.IntN(tenants)
			isKnown = tenant*37%100 >= floods
			if weight = 1; isKnown {
				weight = weights[(tenant+changed)%len(weights)]
			}
			return tenant, weight, isKnown, 1 + r.Int64N(most)
		}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range rapid.IntRange(0, 400).Draw(t, "pushed") {
				tenant, weight, isKnown, cost := one()
				pushCosting(q, tenant, weight, isKnown, cost)
			}
			for range min(q.Len(), rapid.IntRange(0, 300).Draw(t, "served")) {
				c := q.First()
				q.Learn(c.node.Cost)
				q.Serve(&c.node, c.node.Cost)
			}
		}
		changed = rapid.IntRange(0, 1).Draw(t, "changed")
		tenant, weight, isKnown, cost := one()
		said := q.Ahead(key(tenant), weight, isKnown, most)
		if q.Len() == 0 {
			require.Zero(t, said)
		}
		last := pushCosting(q, tenant, weight, isKnown, cost)
		require.LessOrEqual(t, servedBefore(t, q, last), said)
	})
}

// Of calls that all cost the same, the bound is near to what comes true.
func TestWorkAheadIsNearToWhatComesTrue(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for range 100 {
		q.Learn(1000)
	}
	for i := range 20 {
		for range 50 {
			pushCosting(q, i, 1, true, 1000)
		}
	}
	assert.InDelta(t, 20_000, q.Ahead(key(100), 1, true, 1000), 6000, "one call of each of the others")
	assert.InDelta(t, 1_000_000, q.Ahead(key(3), 1, true, 1000), 30_000, "all that wait")
	for range 500 {
		c := q.First()
		q.Serve(&c.node, 1000)
	}
	said := q.Ahead(key(3), 1, true, 1000)
	last := pushCosting(q, 3, 1, true, 1000)
	assert.InDelta(t, servedBefore(t, q, last), said, 30_000)
}
