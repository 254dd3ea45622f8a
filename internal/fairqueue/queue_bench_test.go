package fairqueue_test

import (
	"fmt"
	"testing"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// BenchmarkPushAndServe has a call of any tenant join and the first one served.
func BenchmarkPushAndServe(b *testing.B) {
	for _, size := range []struct{ tenants, waiting int }{
		{1, 1e3}, {10, 1e3}, {1e3, 1e4}, {1e5, 1e4}, {1e6, 1e4}, {1e6, 1e5},
	} {
		b.Run(fmt.Sprintf("%d tenants, %d waiting", size.tenants, size.waiting), func(b *testing.B) {
			q := fairqueue.New[call](1 << 14)
			r := random(1)
			keys, next := make([]uint64, 1<<16), 0
			for i := range keys {
				keys[i] = key(r.IntN(size.tenants))
			}
			costs := make([]int64, 1<<12)
			for i := range costs {
				costs[i] = int64(r.ExpFloat64() * 1e7)
				q.Learn(costs[i])
			}
			calls := make([]call, size.waiting)
			for i := range calls {
				q.Push(&calls[i], &calls[i].node, key(r.IntN(size.tenants)), 1, true)
			}
			step := func() {
				c := q.First()
				q.Serve(&c.node, costs[next%len(costs)])
				q.Push(c, &c.node, keys[next%len(keys)], 1, true)
				next++
			}
			for range 2 * size.waiting {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// BenchmarkSettle charges a tenant that waits.
func BenchmarkSettle(b *testing.B) {
	q := fairqueue.New[call](1 << 14)
	r := random(1)
	charges := make([]fairqueue.Charge, 1000)
	for i := range charges {
		push(q, i, 1)
		push(q, i, 1)
	}
	for range charges {
		c := serve(q, 1e7)
		charges[c.index] = c.charge
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Settle(charges[i%len(charges)], int64(r.Uint32())>>8)
	}
}
