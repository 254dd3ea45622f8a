package fairqueue_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// model is start-time fair queuing as it is defined: tags are exact numbers, and nothing is
// forgotten.
type model struct {
	virtual float64
	tenants map[uint64]*modelTenant
}

type modelTenant struct {
	tag, weight float64
	waiting     []*call
}

func (m *model) push(c *call, weight float64) {
	t := m.tenants[c.tenant]
	if t == nil {
		t = &modelTenant{}
		m.tenants[c.tenant] = t
	}
	if len(t.waiting) == 0 {
		t.tag = max(t.tag, m.virtual)
	}
	t.weight = weight
	t.waiting = append(t.waiting, c)
}

// least returns the least tag of those who wait.
func (m *model) least() float64 {
	least := math.Inf(1)
	for _, t := range m.tenants {
		if len(t.waiting) > 0 {
			least = min(least, t.tag)
		}
	}
	return least
}

func (m *model) serve(c *call, cost int64) {
	t := m.tenants[c.tenant]
	m.virtual = max(m.virtual, t.tag)
	t.tag += float64(cost) / t.weight
	m.remove(c)
}

func (m *model) remove(c *call) {
	t := m.tenants[c.tenant]
	t.waiting = slices.DeleteFunc(t.waiting, func(other *call) bool { return other == c })
}

// all returns the calls that wait, in the order in which they came.
func (m *model) all() (calls []*call) {
	for _, t := range m.tenants {
		calls = append(calls, t.waiting...)
	}
	slices.SortFunc(calls, func(a, b *call) int { return a.number - b.number })
	return calls
}

func (m *model) length(tenant uint64) int {
	if t := m.tenants[tenant]; t != nil {
		return len(t.waiting)
	}
	return 0
}

// share returns the most calls that a tenant with at least two has waiting, for its weight.
func (m *model) share() float64 {
	share := 0.0
	for _, t := range m.tenants {
		if len(t.waiting) > 1 {
			share = max(share, float64(len(t.waiting))/t.weight)
		}
	}
	return share
}

// meanCost is what all calls cost in the tests that compare with the model; a slot is an eighth.
const (
	meanCost = 1 << 20
	slot     = meanCost / 8
)

func TestQueueServesTheTenantWithTheLeastTagToTwoSlots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := fairqueue.New[call](1 << 10)
		for range 300 {
			q.Learn(meanCost)
		}
		m := &model{tenants: map[uint64]*modelTenant{}}
		tenants := rapid.SampledFrom([]int{1, 2, 3, 20, 300}).Draw(t, "tenants")
		weights := rapid.SampledFrom([][]float64{{1}, {1, 2}, {0.5, 1, 8}}).Draw(t, "weights")
		number := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				tenant := rapid.IntRange(0, tenants-1).Draw(t, "tenant")
				for range rapid.IntRange(1, 5).Draw(t, "calls") {
					c := push(q, tenant, weights[tenant%len(weights)])
					c.number = number
					number++
					m.push(c, weights[tenant%len(weights)])
				}
			},
			"serve": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "calls") {
					first := q.First()
					require.Equal(t, q.Len() == 0, first == nil)
					if first == nil {
						return
					}
					tenant := m.tenants[first.tenant]
					require.Same(t, tenant.waiting[0], first, "the oldest of its tenant")
					require.LessOrEqual(t, tenant.tag, m.least()+2*slot)
					cost := rapid.Int64Range(1, 2*meanCost).Draw(t, "cost")
					q.Serve(&first.node, cost)
					m.serve(first, cost)
				}
			},
			"remove": func(t *rapid.T) {
				if calls := m.all(); len(calls) > 0 {
					c := rapid.SampledFrom(calls).Draw(t, "call")
					q.Remove(&c.node)
					m.remove(c)
				}
			},
			"": func(t *rapid.T) { m.compare(t, q, weights) },
		})
	})
}

func (m *model) compare(t *rapid.T, q *queue, weights []float64) {
	calls := m.all()
	require.Equal(t, len(calls), q.Len())
	waiting := 0
	for k, tenant := range m.tenants {
		require.Equal(t, len(tenant.waiting), q.Waiting(k))
		if len(tenant.waiting) > 0 {
			waiting++
		}
	}
	require.Equal(t, waiting, q.Tenants())
	found := slices.Collect(q.All())
	slices.SortFunc(found, func(a, b *call) int { return a.number - b.number })
	require.Equal(t, calls, found)
	m.compareFull(t, q, weights)
}

// compareFull compares what happens if the queue is full.
func (m *model) compareFull(t *rapid.T, q *queue, weights []float64) {
	newcomer, weight := key(rapid.IntRange(0, 300).Draw(t, "newcomer")), rapid.SampledFrom(weights).Draw(t, "weight")
	gone := q.MakesWay(newcomer, weight, true)
	if share := m.share(); float64(m.length(newcomer)+1)/weight >= share {
		require.Nil(t, gone)
	} else {
		of := m.tenants[gone.tenant]
		require.InEpsilon(t, share, float64(len(of.waiting))/of.weight, 1e-9)
		require.Same(t, of.waiting[len(of.waiting)-1], gone)
	}
	last := q.Last()
	require.Equal(t, q.Len() == 0, last == nil)
	if last != nil && m.share() > 0 {
		require.InEpsilon(t, m.share(), float64(m.length(last.tenant))/m.tenants[last.tenant].weight, 1e-9)
	}
	shares := q.Longest(make([]fairqueue.Share[call], 0, 3))
	counts := slices.Sorted(maps.Keys(countsOf(m)))
	require.Len(t, shares, min(3, q.Tenants()))
	for i, s := range shares {
		require.Equal(t, m.length(s.Oldest.tenant), s.Waiting)
		require.LessOrEqual(t, s.Waiting, counts[len(counts)-1])
		if i > 0 {
			require.LessOrEqual(t, s.Waiting, shares[i-1].Waiting)
		} else {
			require.Equal(t, counts[len(counts)-1], s.Waiting)
		}
	}
}

func countsOf(m *model) map[int]bool {
	counts := map[int]bool{}
	for _, t := range m.tenants {
		counts[len(t.waiting)] = true
	}
	return counts
}

// What two tenants that both wait have got of late differs by no more than a call of each, and two
// slots.
func TestTenantsThatWaitGetTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := fairqueue.New[call](1 << 10)
		for range 300 {
			q.Learn(meanCost)
		}
		tenants := rapid.IntRange(2, 50).Draw(t, "tenants")
		calls := rapid.IntRange(100, 1000).Draw(t, "calls")
		r := random(rapid.Uint64().Draw(t, "seed"))
		work := map[uint64]int64{}
		greatest := int64(0)
		for i := range tenants {
			for range r.IntN(3) + 1 {
				push(q, i, 1)
			}
		}
		for range calls {
			cost := r.Int64N(2 * meanCost)
			c := serve(q, cost)
			push(q, c.index, 1)
			work[c.tenant] += cost
			greatest = max(greatest, cost)
			least := int64(math.MaxInt64)
			for i := range tenants {
				least = min(least, work[key(i)])
			}
			require.LessOrEqual(t, work[c.tenant]-least, 2*greatest+2*slot)
		}
	})
}
