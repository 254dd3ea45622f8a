package fairqueue_test

import (
	"math/rand/v2"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// call is a call that waits.
type call struct {
	index  int // of the tenant
	tenant uint64
	number int
	node   fairqueue.Node[call]
	charge fairqueue.Charge
}

type queue = fairqueue.Queue[call]

// key returns the key of a tenant, which is as good as a hash.
func key(tenant int) uint64 {
	x := uint64(tenant+1) * 0x9E3779B97F4A7C15
	x ^= x >> 31
	x *= 0xD6E8FEB86659FD93
	return x ^ x>>32
}

// push has a call of a tenant wait; one in 16 tenants is not known.
func push(q *queue, tenant int, weight float64) *call {
	c := &call{index: tenant, tenant: key(tenant)}
	q.Push(c, &c.node, c.tenant, weight, tenant%16 > 0)
	return c
}

// serve serves the first call, whose cost is known.
func serve(q *queue, cost int64) *call {
	c := q.First()
	if c != nil {
		c.charge = q.Serve(&c.node, cost)
	}
	return c
}

// random returns numbers that are the same each time.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
