package ask

import "github.com/penstock-go/penstock/internal/sharing/exchange"

// queue is what is to be sent to a partition of the store.
type queue struct {
	to      *exchange.Partition
	asks    []*asking // calls that ask
	flushes []*Asker  // that have something to hand back or to pay
}

// nextAsk takes the call that asked first.
func (q *queue) nextAsk() *asking {
	first := q.asks[0]
	q.asks[0] = nil
	q.asks = q.asks[1:]
	return first
}
