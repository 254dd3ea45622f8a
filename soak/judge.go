package main

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// judge holds what passed before an instant against the promise.
func (p *promise) judge(until clock.Instant, isCold func(end clock.Instant) bool, w *wrong) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for end := millisecond(until); p.judged < end; {
		if p.window > 0 {
			p.judgeWindow(isCold, w)
		} else {
			p.judgeRate(w)
		}
	}
}

// judgeWindow goes on by a millisecond and judges the window that ends then.
func (p *promise) judgeWindow(isCold func(end clock.Instant) bool, w *wrong) {
	ended, began := &p.ended[p.judged%remembered], &p.began[(p.judged-p.window+remembered)%remembered]
	p.sumEnded, p.sumBegan = p.sumEnded+int64(*ended), p.sumBegan+int64(*began)
	*ended, *began = 0, 0
	p.judged++
	if p.judged%p.step != 0 {
		return
	}
	tokens, limit := float64(p.sumEnded-p.sumBegan), p.limit
	end := clock.Instant(p.judged * int64(time.Millisecond))
	if p.coldLimit > 0 && isCold(end) {
		limit = p.coldLimit
	}
	p.fullest = max(p.fullest, share(tokens, limit))
	if tokens > limit {
		w.add("%s (%s): %v tokens in the %d ms before %v, at most %v may be", p.name, p.words, tokens, p.window, end.Time(), limit)
	}
}

// judgeRate goes on by a millisecond and judges every interval that ends then.
func (p *promise) judgeRate(w *wrong) {
	ended, began := &p.ended[p.judged%remembered], &p.began[p.judged%remembered]
	p.least = min(p.least, float64(p.sumBegan)-p.rate*float64(p.judged))
	p.sumEnded, p.sumBegan = p.sumEnded+int64(*ended), p.sumBegan+int64(*began)
	*ended, *began = 0, 0
	p.judged++
	const rounding = 1e-3
	tokens := float64(p.sumEnded) - p.rate*float64(p.judged) - p.least
	p.fullest = max(p.fullest, share(tokens, p.burst))
	if tokens > p.burst+rounding {
		w.add("%s (%s): %.2f tokens more than flow in at once before %v, at most %v may be", p.name, p.words, tokens,
			clock.Instant(p.judged*int64(time.Millisecond)).Time(), p.burst)
		p.least += tokens // told once
	}
}

func share(tokens, limit float64) float64 {
	if tokens == 0 {
		return 0
	}
	return tokens / limit
}
