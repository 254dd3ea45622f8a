package simulate_test

import "github.com/penstock-go/penstock/flow"

// newCounter returns the window of a rule whose limit is a whole number; one
// that warms up is a sliding window of a second.
func newCounter(rule flow.Rule) counter {
	if rule.Algorithm == flow.FixedWindow {
		return &fixedWindow{window: int64(rule.Window), limit: int64(rule.Limit)}
	}
	w := &slidingWindow{bucket: int64(rule.Window) / int64(rule.Buckets), span: int64(rule.Buckets), limit: int64(rule.Limit)}
	w.tokens = map[int64]int64{}
	if rule.Strict {
		w.span++
	}
	if rule.WarmUp.Period > 0 {
		return &warmWindow{sentinelBucket: newSentinelBucket(rule), window: *w}
	}
	return w
}

// slidingWindow counts the tokens of the bucket that now is in and of those
// before it, span in all.
type slidingWindow struct {
	bucket, span, limit int64
	tokens              map[int64]int64 // by the number of their bucket
}

func (w *slidingWindow) fits(now, tokens int64) bool {
	for b := now / w.bucket; b > now/w.bucket-w.span; b-- {
		tokens += w.tokens[b]
	}
	return tokens <= w.limit
}

func (w *slidingWindow) count(now, tokens int64) { w.tokens[now/w.bucket] += tokens }

// fixedWindow counts the tokens of one window of the calendar.
type fixedWindow struct {
	window, limit  int64
	number, tokens int64
}

func (w *fixedWindow) fits(now, tokens int64) bool {
	if now/w.window != w.number {
		return tokens <= w.limit
	}
	return w.tokens+tokens <= w.limit
}

func (w *fixedWindow) count(now, tokens int64) {
	if now/w.window != w.number {
		w.number, w.tokens = now/w.window, 0
	}
	w.tokens += tokens
}
