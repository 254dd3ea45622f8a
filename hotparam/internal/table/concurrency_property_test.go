package table

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// While values fit, a table decides as exact counts do, also when it is replaced by larger
// and smaller ones while calls are under way.
func TestConcurrencyCountsCallsUnderWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version, size := uint64(1), 200
		c := NewConcurrency(size, version)
		limit := rapid.Int64Range(0, 5).Draw(t, "limit")
		type call struct {
			table *Concurrency
			place Place
			value int
		}
		var underWay []call
		count := make([]int64, 5)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				version++
				size = rapid.SampledFrom([]int{200, 300, 1000}).Draw(t, "size")
				before := c
				c = c.Adopt(size, 0)
				if rapid.Bool().Draw(t, "activate") {
					c.Activate(version)
				}
				_, outcome := c.Acquire(hashOf(99), version, 0, NoSource)
				require.Equal(t, Refused, outcome)
				_, outcome = before.Acquire(hashOf(0), version-1, 100, NoSource)
				require.Equal(t, Stale, outcome)
			case 1, 2, 3, 4:
				if len(underWay) > 0 {
					i := rapid.IntRange(0, len(underWay)-1).Draw(t, "call")
					ended := underWay[i]
					ended.table.Release(ended.place)
					count[ended.value]--
					underWay = append(underWay[:i], underWay[i+1:]...)
				}
			default:
				v := rapid.IntRange(0, len(count)-1).Draw(t, "value")
				require.Equal(t, count[v], c.InFlight(hashOf(uint64(v)), 0))
				p, outcome := c.Acquire(hashOf(uint64(v)), version, limit, NoSource)
				require.Equal(t, count[v] < limit, outcome == Taken)
				if outcome == Taken {
					count[v]++
					underWay = append(underWay, call{c, p, v})
				}
			}
		}
		for _, left := range underWay {
			left.table.Release(left.place)
		}
		require.Zero(t, c.Stats().Occupied)
	})
}
