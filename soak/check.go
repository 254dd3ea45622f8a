package main

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// check checks the calls that passed before an instant.
func (p *promise) check(until clock.Instant, isCold func(end clock.Instant) bool, w *findings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for end := millisecond(until); p.checkedUntil < end; {
		if p.window > 0 {
			p.checkWindow(isCold, w)
		} else {
			p.checkRate(w)
		}
	}
}

// checkWindow advances by a millisecond and checks the window that ends then.
func (p *promise) checkWindow(isCold func(end clock.Instant) bool, w *findings) {
	ended, began := &p.ended[p.checkedUntil%historyLength], &p.began[(p.checkedUntil-p.window+historyLength)%historyLength]
	p.sumEnded, p.sumBegan = p.sumEnded+int64(*ended), p.sumBegan+int64(*began)
	*ended, *began = 0, 0
	p.checkedUntil++
	if p.checkedUntil%p.step != 0 {
		return
	}
	tokens, limit := float64(p.sumEnded-p.sumBegan), p.limit
	end := clock.Instant(p.checkedUntil * int64(time.Millisecond))
	if p.coldLimit > 0 && isCold(end) {
		limit = p.coldLimit
	}
	p.fullest = max(p.fullest, share(tokens, limit))
	if tokens > limit {
		w.add("%s (%s): %v tokens in the %d ms before %v, at most %v may be", p.name, p.description, tokens, p.window, end.Time(), limit)
	}
}

// checkRate advances by a millisecond and checks every interval that ends then.
func (p *promise) checkRate(w *findings) {
	ended, began := &p.ended[p.checkedUntil%historyLength], &p.began[p.checkedUntil%historyLength]
	p.least = min(p.least, float64(p.sumBegan)-p.rate*float64(p.checkedUntil))
	p.sumEnded, p.sumBegan = p.sumEnded+int64(*ended), p.sumBegan+int64(*began)
	*ended, *began = 0, 0
	p.checkedUntil++
	const rounding = 1e-3
	tokens := float64(p.sumEnded) - p.rate*float64(p.checkedUntil) - p.least
	p.fullest = max(p.fullest, share(tokens, p.burst))
	if tokens > p.burst+rounding {
		w.add("%s (%s): %.2f tokens more than flow in at once before %v, at most %v may be", p.name, p.description, tokens,
			clock.Instant(p.checkedUntil*int64(time.Millisecond)).Time(), p.burst)
		p.least += tokens // so that it is reported once
	}
}

func share(tokens, limit float64) float64 {
	if tokens == 0 {
		return 0
	}
	return tokens / limit
}
