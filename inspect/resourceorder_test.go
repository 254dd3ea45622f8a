package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// The order of many resources is kept in proportion to what it took to find it; what is shown of them is not.
func TestOrderOfManyResourcesIsKeptForATime(t *testing.T) {
	c := clock.NewVirtual(time.Unix(1e9, 0))
	engine := core.New(core.Config{Clock: c})
	defer engine.Close()
	call := func(name string) {
		guard, err := engine.Entry(t.Context(), name)
		require.NoError(t, err)
		guard.Exit()
	}
	for i := range leastOrdered {
		call(fmt.Sprint("r", i))
	}
	call("r7")
	h := handler{engine: engine, recent: new(recentTimes), orders: new(resourceOrders)}
	f := resourceFilter{ResourceQuery: ResourceQuery{Sort: SortPassed, Limit: 2}}
	first := func() string {
		list, total := h.orderedResources(&f)
		assert.Equal(t, leastOrdered, total)
		require.Len(t, list, 2)
		return list[0].view.Name
	}
	require.Equal(t, "r7", first())
	list, total := h.selectResources(&f)
	now := c.Now()
	h.orders.keep(pageKey{"", SortPassed, 2}, list, total, now.Add(-10*time.Millisecond), now)
	for range 5 {
		call("r8")
	}
	require.Equal(t, "r7", first(), "as it was")
	c.Advance(2999 * time.Millisecond)
	require.Equal(t, "r7", first())
	kept, _ := h.orderedResources(&f)
	passed, _ := kept[0].view.CallsOfMinute()
	assert.EqualValues(t, 2, passed)
	c.Advance(time.Millisecond)
	require.Equal(t, "r8", first(), "found anew")

	h.orders.keep(pageKey{"", SortPassed, 2}, list, total, c.Now().Add(-time.Hour), c.Now())
	c.Advance(maxKept)
	require.Equal(t, "r8", first(), "it is kept no longer")
	for i := range 3 * maxOrders {
		h.orders.keep(pageKey{fmt.Sprint(i), SortPassed, 2}, list, total, c.Now().Add(-time.Hour), c.Now())
	}
	assert.LessOrEqual(t, len(h.orders.known), maxOrders)
	h.orders.keep(pageKey{"few", SortPassed, 2}, list, leastOrdered-1, c.Now().Add(-time.Hour), c.Now())
	assert.Nil(t, h.orders.find(pageKey{"few", SortPassed, 2}, c.Now()))
}
