package inspect

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// leastOrdered is how many resources there have to be for their order to be kept for a time.
	leastOrdered = 1000

	// keptShare is how much longer is kept what is found among all resources than it took to find it, so that
	// this costs a three-hundredth of a core, and maxKept the longest time.
	keptShare = 300
	maxKept   = 5 * time.Second

	maxOrders = 16 // that are kept
)

// resourceOrders keeps which resources come first among many: to find them is most of what a page costs.
type resourceOrders struct {
	mu    sync.Mutex // guards what follows
	known map[pageKey]*resourceOrder
}

// resourceOrder is the first resources in an order, as they were found.
type resourceOrder struct {
	names []string
	total int
	until clock.Instant
}

// find returns the names that are known and not too old.
func (o *resourceOrders) find(key pageKey, now clock.Instant) *resourceOrder {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.known[key]; found != nil && now < found.until {
		return found
	}
	return nil
}

// keep keeps what was found, which took from one instant to another.
func (o *resourceOrders) keep(key pageKey, list []selected, total int, from, until clock.Instant) {
	if total < leastOrdered {
		return
	}
	found := &resourceOrder{total: total, until: keptUntil(from, until)}
	for i := range list {
		found.names = append(found.names, list[i].view.Name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, order := range o.known {
		if order.until <= until || len(o.known) >= maxOrders {
			delete(o.known, other)
		}
	}
	if o.known == nil {
		o.known = make(map[pageKey]*resourceOrder)
	}
	o.known[key] = found
}

// keptUntil returns until when something is kept that it took from one instant to another to find.
func keptUntil(began, found clock.Instant) clock.Instant {
	return found.Add(min(keptShare*found.Sub(began), maxKept))
}

// orderedResources returns the resources that a query selects, in its order, up to the end of the page, and
// how many there are on all pages. Of many resources the order may be a few seconds old.
func (h handler) orderedResources(f *resourceFilter) (list []selected, total int) {
	key, began := pageKey{f.Match, f.Sort, f.Offset + f.Limit}, h.engine.Clock().Now()
	if known := h.orders.find(key, began); known != nil {
		for _, name := range known.names {
			if view, ok := h.engine.View(name); ok {
				list = append(list, selected{view: view})
			}
		}
		return list, known.total
	}
	list, total = h.selectResources(f)
	h.orders.keep(key, list, total, began, h.engine.Clock().Now())
	return list, total
}
