package fairqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// Each call of the flood, ten times what the pool can do, has a tenant of its own.
func TestKnownTenantsDoNotWaitForInventedOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene
		p99, refused float64
	}{
		"100 tenants":    {scene{honest: 100, flooders: 1, ask: .4, flood: 10, invented: true, calm: 3}, 10, 0},
		"10,000 tenants": {scene{honest: 10_000, flooders: 1, ask: .4, flood: 10, invented: true, calm: 50}, 10, .15},
		"calls of the flood are ten times as long": {
			scene{honest: 100, flooders: 1, ask: .4, flood: 10, long: 10, invented: true, calm: 3}, 100, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := simulate(c.scene, 4, new(fairqueue.Known))
			t.Logf("%.3v", o)
			assert.LessOrEqual(t, o.p99, c.p99, "99 of 100 waits, in ms")
			assert.LessOrEqual(t, o.refused, c.refused)
			c.calm = 1
			assert.Greater(t, simulate(c.scene, 2, nil).refused, .5, "without what is known")
		})
	}
}

// pushUnknown has a call of a tenant wait that is not known.
func pushUnknown(q *queue, tenant int) *call {
	c := &call{index: tenant, tenant: key(tenant)}
	q.Push(c, &c.node, c.tenant, 1, false)
	return c
}

// pushKnown has a call of a tenant wait that is.
func pushKnown(q *queue, tenant int) *call {
	c := &call{index: tenant, tenant: key(tenant)}
	q.Push(c, &c.node, c.tenant, 1, true)
	return c
}

func TestFloodBeginsAndEnds(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	q.Flood = 40
	for i := range 15 {
		pushKnown(q, 100+i)
	}
	for i := range 40 {
		pushUnknown(q, i)
	}
	assert.False(t, q.IsFlooded(), "40 are none")
	last := pushUnknown(q, 40)
	assert.True(t, q.IsFlooded())
	assert.Equal(t, 41, q.Unknown())
	for i := range 6 {
		pushKnown(q, 200+i)
	}
	assert.False(t, q.IsFlooded(), "there are half as many that are known")
	q.Remove(&last.node)
	assert.Equal(t, 40, q.Unknown())
}

func TestKnownAndUnknownTenantsGetHalfInAFlood(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for range 100 {
		q.Learn(1000)
	}
	for i := range 100 {
		pushUnknown(q, i)
	}
	for range 100 {
		pushKnown(q, 1000)
	}
	work := map[bool]int64{}
	for i := range 60 {
		c := serve(q, fairqueue.Unknown)
		cost := int64(1000)
		if c.index < 1000 {
			cost = 3000 // which is known when the call ends
		}
		work[c.index < 1000] += cost
		q.Settle(c.charge, cost)
		pushUnknown(q, 2000+i)
		require.True(t, q.IsFlooded())
	}
	assert.InDelta(t, work[true], work[false], 4000)
}

func TestKnownTenantTakesAPlaceOfAnUnknownOne(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for i := range 50 {
		pushUnknown(q, i)
	}
	assert.Nil(t, q.MakesWay(key(99), 1, false), "all have one call")
	assert.True(t, q.NobodyMakesWay())
	for i := range 25 {
		gone := q.MakesWay(key(100), 1, true)
		require.NotNil(t, gone)
		assert.Less(t, gone.index, 50)
		q.Remove(&gone.node)
		pushKnown(q, 100)
		assert.Equal(t, 50, q.Len(), "%d", i)
		if !q.IsFlooded() { // there are too few
			break
		}
	}
	assert.Equal(t, 32, q.Unknown())
	assert.False(t, q.NobodyMakesWay())
	assert.Equal(t, 100, q.MakesWay(key(99), 1, false).index, "there is no flood: whoever has most loses a call")
}

func TestEachGroupHasHalfOfTheQueueInAFlood(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for i := range 60 {
		pushUnknown(q, i)
	}
	for range 60 {
		pushKnown(q, 100)
	}
	assert.Equal(t, 100, q.MakesWay(key(101), 1, true).index, "among themselves")
	assert.Nil(t, q.MakesWay(key(101), 1, false), "the others have half")
	pushKnown(q, 100)
	pushKnown(q, 100)
	assert.Equal(t, 100, q.MakesWay(key(101), 1, false).index, "the others have more")
	assert.Equal(t, 100, q.Last().index)
	for i := range 5 {
		pushUnknown(q, 60+i)
	}
	assert.Less(t, q.Last().index, 100)
}

// One that is served while few others wait is known from then on, and its calls that wait are too.
func TestTenantBecomesKnownWhileFewOthersWait(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for range 3 {
		pushUnknown(q, 7)
	}
	pushUnknown(q, 8)
	c := serve(q, 1)
	assert.True(t, c.charge.IsKnown())
	assert.Equal(t, 1, q.Unknown())
	for i := range 50 {
		pushUnknown(q, 100+i)
	}
	assert.True(t, q.IsFlooded())
	served := serve(q, 1)
	assert.Equal(t, 7, served.index)
	served = serve(q, 1)
	assert.False(t, served.charge.IsKnown())
}

// Whatever joins, leaves and is served, nothing is lost, the calls of a tenant keep their order, and none
// that is refused could join.
func TestFloodLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := fairqueue.New[call](1 << 10)
		q.Flood = rapid.IntRange(0, 50).Draw(t, "flood")
		waiting := map[int][]*call{}
		count := 0
		leave := func(c *call, first bool) {
			of := waiting[c.index]
			at := len(of) - 1
			if first {
				at = 0
			}
			require.Same(t, of[at], c)
			waiting[c.index] = append(of[:at:at], of[at+1:]...)
			count--
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				from := rapid.IntRange(0, 200).Draw(t, "from")
				isKnown := rapid.Bool().Draw(t, "known")
				for i := range rapid.IntRange(1, 60).Draw(t, "calls") {
					c := &call{index: from + i, tenant: key(from + i)}
					if count >= 150 {
						gone := q.MakesWay(c.tenant, 1, isKnown)
						if gone == nil {
							continue
						}
						leave(gone, false)
						q.Remove(&gone.node)
					}
					q.Push(c, &c.node, c.tenant, 1, isKnown)
					waiting[c.index] = append(waiting[c.index], c)
					count++
				}
			},
			"serve": func(t *rapid.T) {
				for range min(count, rapid.IntRange(1, 60).Draw(t, "calls")) {
					c := serve(q, fairqueue.Unknown)
					leave(c, true)
					q.Settle(c.charge, rapid.Int64Range(0, 1000).Draw(t, "cost"))
				}
			},
			"": func(t *rapid.T) {
				tenants := 0
				for _, of := range waiting {
					tenants += min(1, len(of))
				}
				require.Equal(t, count, q.Len())
				require.Equal(t, tenants, q.Tenants())
				require.LessOrEqual(t, q.Unknown(), tenants)
				require.Equal(t, count == 0, q.First() == nil)
				require.Equal(t, count == 0, q.Last() == nil)
				if q.NobodyMakesWay() {
					require.Nil(t, q.MakesWay(key(1000), 1, false))
				}
			},
		})
	})
}

func TestKnownTenantsAreForgottenAfterTenMinutes(t *testing.T) {
	t.Parallel()
	var k fairqueue.Known
	assert.False(t, k.Has(key(1), 0))
	assert.True(t, k.Add(key(1), 0))
	assert.False(t, k.Add(key(1), 0))
	k.Add(key(2), 0)
	assert.True(t, k.Has(key(1), 600*time.Second))
	assert.True(t, k.Has(key(1), 1200*time.Second), "it was asked for")
	for _, later := range []time.Duration{1200, 2560, 2600, 3000, 100_000, 1e9} {
		assert.False(t, k.Has(key(2), later*time.Second), "%d s", later)
	}
}

// The table grows to 64 KiB, and has most of the tenants that there are.
func TestKnownHasMostTenants(t *testing.T) {
	t.Parallel()
	for tenants, most := range map[int]int{50: 0, 1000: 10, 10_000: 1500, 100_000: 90_000} {
		t.Run(fmt.Sprint(tenants), func(t *testing.T) {
			t.Parallel()
			var k fairqueue.Known
			for i := range tenants {
				k.Add(key(i), time.Duration(i))
			}
			forgotten, taken := 0, 0
			for i := range tenants {
				if !k.Has(key(i), time.Second) {
					forgotten++
				}
				if k.Has(key(i+tenants), time.Second) {
					taken++
				}
			}
			assert.LessOrEqual(t, forgotten, most)
			assert.LessOrEqual(t, taken, 5+tenants/500, "strangers that are taken for known ones")
		})
	}
}
