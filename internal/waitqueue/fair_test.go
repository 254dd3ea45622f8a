package waitqueue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/waitqueue"
)

// pushOf has calls of tenants join at a level; the letter of a tenant is its name.
func pushOf(q *queue, level int, tenants string) {
	for _, c := range tenants {
		w := &waiter{name: string(c), level: level}
		q.PushOf(w, &w.node, level, waitqueue.Tenant{Key: uint64(c), Weight: 1, Known: true})
	}
}

// serveAt serves calls that cost one unit each.
func serveAt(q *queue, places int) string {
	var served strings.Builder
	for range places {
		if w := q.First(); w != nil {
			q.ServeAt(&w.node, 1<<20)
			served.WriteString(w.name)
		}
	}
	return served.String()
}

func TestTenantsHaveSharesWithinAPriority(t *testing.T) {
	t.Parallel()
	var q queue
	q.ShareFairly(100, 0)
	pushOf(&q, 2, "aaaabc")
	pushOf(&q, 3, "xxxxxxxxy")
	assert.Equal(t, "xyxxxxxaxxbcaaa", serveAt(&q, 20), "one of eight places goes to the lower priority")
	assert.Zero(t, q.Len())
	assert.Nil(t, q.First())
}

func TestCallsWithoutSharesAreServedBeforeThoseThatCameLater(t *testing.T) {
	t.Parallel()
	var q queue
	push(&q, "nnn")
	q.ShareFairly(100, 0)
	pushOf(&q, 2, "aab")
	q.ShareFairly(0, 0)
	push(&q, "nn")
	assert.Equal(t, "nnnabann", serveAt(&q, 9))
}

// Whatever joins, leaves and is served: nothing is lost or served twice, and the calls of a tenant keep
// their order.
func TestNothingIsLostWhetherTenantsHaveSharesOrNot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var waiting []*waiter
		var charges []waitqueue.Charge
		t.Repeat(map[string]func(*rapid.T){
			"change": func(*rapid.T) {
				if q.SharesFairly() {
					q.ShareFairly(0, 0)
				} else {
					q.ShareFairly(100, 0)
				}
			},
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "calls") {
					w := &waiter{level: rapid.IntRange(0, waitqueue.Levels-1).Draw(t, "level")}
					if !q.SharesFairly() {
						q.Push(w, &w.node, w.level)
					} else {
						w.name = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
						q.PushOf(w, &w.node, w.level, waitqueue.Tenant{Key: uint64(w.name[0]), Weight: 1, Known: true})
					}
					waiting = append(waiting, w)
				}
			},
			"serve": func(t *rapid.T) {
				for range rapid.IntRange(1, 9).Draw(t, "places") {
					w := q.First()
					if w == nil {
						break
					}
					of := slices.IndexFunc(waiting, func(o *waiter) bool { return o.name == w.name && o.level == w.level })
					require.Same(t, waiting[of], w, "the oldest of its tenant and level")
					charge := q.ServeAt(&w.node, rapid.Int64Range(-1, 1000).Draw(t, "cost"))
					require.Equal(t, w.name != "", charge.IsSet())
					charges = append(charges, charge)
					waiting = slices.Delete(waiting, of, of+1)
				}
			},
			"settle": func(t *rapid.T) {
				for _, c := range charges {
					q.Settle(c, rapid.Int64Range(0, 1000).Draw(t, "cost"))
				}
				charges = nil
			},
			"remove": func(t *rapid.T) {
				if len(waiting) > 0 {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "call")
					q.Remove(&waiting[i].node)
					waiting = slices.Delete(waiting, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(waiting), q.Len())
				require.Len(t, slices.Collect(q.All()), q.Len())
				require.Equal(t, q.Len() == 0, q.First() == nil)
				if last := q.Last(); last != nil {
					require.Equal(t, q.Lowest(), last.level)
				} else {
					require.Empty(t, waiting)
				}
			},
		})
	})
}
