package flow_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

const stressBuckets = 400

// rush is many goroutines at one window, on a time that they move themselves.
type rush struct {
	window   *flow.Window
	compiled atomic.Pointer[flow.Compiled]
	bucket   time.Duration
	now      atomic.Int64                // since the epoch
	passed   [stressBuckets]atomic.Int64 // by bucket
}

func newRush(t *testing.T, rule flow.Rule) *rush {
	r := &rush{bucket: flow.Kind().WithDefaults(rule).Window / time.Duration(flow.Kind().WithDefaults(rule).Buckets)}
	r.compiled.Store(compile(t, rule, 1))
	r.window = flow.NewWindow(r.compiled.Load(), epoch)
	return r
}

// call takes one to three tokens, reading the time again when it is outdated,
// and now and then gives them back.
func (r *rush) call(i int) {
	n := int32(1 + i%3)
	for {
		since := time.Duration(r.now.Load())
		at := epoch.Add(since)
		compiled := r.compiled.Load()
		switch r.window.Take(compiled, at, n) {
		case rule.Pass:
			if i%10 == 0 {
				r.window.GiveBack(compiled, at, n)
				return
			}
			r.passed[since/r.bucket].Add(int64(n))
			return
		case rule.Block:
			return
		}
	}
}

// run has callers make calls while each so many of them move the time on by a
// fraction of a bucket.
func (r *rush) run(callers, calls int) {
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			for i := range calls {
				if (c+i)%50 == 0 {
					r.now.Add(int64(r.bucket / 7))
				}
				r.call(c + i)
			}
		})
	}
	calling.Wait()
}

// most returns the most that any window of so many buckets has seen.
func (r *rush) most(buckets int) (most int64) {
	var held int64
	for b := range r.passed {
		held += r.passed[b].Load()
		if b >= buckets {
			held -= r.passed[b-buckets].Load()
		}
		most = max(most, held)
	}
	return most
}

func TestWindowNeverPassesMoreThanItsLimitToManyGoroutines(t *testing.T) {
	t.Parallel()
	for name, strict := range map[string]bool{"sliding": false, "strict": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit, span = 200, 10
			r := newRush(t, flow.Rule{Resource: "r", Limit: limit, Strict: strict})
			r.run(64, 800)
			assert.Less(t, time.Duration(r.now.Load()), stressBuckets*r.bucket, "the test has kept count of all")
			buckets := span
			if strict {
				buckets++
			}
			assert.LessOrEqual(t, r.most(buckets), int64(limit))

			// Nothing was lost either: what is left now is exactly the rest.
			last := int(time.Duration(r.now.Load()) / r.bucket)
			var held int64
			for b := max(0, last-buckets+1); b <= last; b++ {
				held += r.passed[b].Load()
			}
			var rest int64
			for r.window.Take(r.compiled.Load(), epoch.Add(time.Duration(r.now.Load())), 1) == rule.Pass {
				rest++
			}
			assert.Equal(t, int64(limit), held+rest)
		})
	}
}

func TestWindowPassesExactlyWhatRemainsToManyGoroutines(t *testing.T) {
	t.Parallel()
	const callers, limit = 64, 1000
	compiled := compile(t, reject(limit), 1)
	w := flow.NewWindow(compiled, epoch)
	passed := make([]int64, 30)
	for b := range passed {
		now := epoch.Add(time.Duration(b) * 100 * time.Millisecond)
		var held int64
		for _, n := range passed[max(0, b-9):b] {
			held += n
		}
		var taken atomic.Int64
		var calling sync.WaitGroup
		for c := range callers {
			calling.Go(func() {
				for i := range 10 * (c%3 + b%2) {
					if w.Take(compiled, now, 1) != rule.Pass {
						continue
					}
					if i%4 == 0 {
						w.GiveBack(compiled, now, 1)
						continue
					}
					taken.Add(1)
				}
			})
		}
		calling.Wait()
		for b%3 == 0 && w.Take(compiled, now, 1) == rule.Pass {
			taken.Add(1) // to the last token
		}
		passed[b] = taken.Load()
		if b%3 == 0 {
			assert.Equal(t, int64(limit), held+passed[b], "bucket %d", b)
		}
		assert.LessOrEqual(t, held+passed[b], int64(limit), "bucket %d", b)
	}
}

func TestWindowKeepsItsLimitOverReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	const highest = 300
	r := newRush(t, reject(highest))
	var done atomic.Bool
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for version := uint64(2); !done.Load(); version++ {
			rule := reject([]float64{100, highest, 0, 250}[version%4])
			compiled := compile(t, rule, version)
			r.compiled.Store(compiled)
			r.window.Adopt(compiled, epoch.Add(time.Duration(r.now.Load())))
			r.window.Status(epoch.Add(time.Duration(r.now.Load())))
			r.window.RetryAfter(epoch.Add(time.Duration(r.now.Load())), 2)
		}
	})
	r.run(32, 800)
	done.Store(true)
	reloading.Wait()
	assert.LessOrEqual(t, r.most(10), int64(highest))
}

// Changes of the geometry, of strict and of the warm-up, all at once: nothing
// hangs, nothing races, and in the end the limit holds as it should.
func TestWindowSurvivesAnyReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 300
	r := newRush(t, reject(limit))
	var done atomic.Bool
	var reloading sync.WaitGroup
	var version uint64 = 1
	reloading.Go(func() {
		for !done.Load() {
			version++
			rule := reject(limit)
			rule.Buckets = []int{10, 5, 20}[version%3]
			rule.Strict = version%5 == 0
			rule.WarmUp.Period = time.Duration(version%4) * time.Second
			r.compiled.Store(compile(t, rule, version))
			r.window.Adopt(r.compiled.Load(), epoch.Add(time.Duration(r.now.Load())))
		}
	})
	r.run(32, 400)
	done.Store(true)
	reloading.Wait()

	now := epoch.Add(time.Duration(r.now.Load()) + time.Minute)
	compiled := compile(t, reject(limit), version+1)
	assert.Equal(t, limit, passUntilRefused(r.window, compiled, now))
	assert.Equal(t, limit, passUntilRefused(r.window, compiled, now.Add(time.Second)))
}

func passUntilRefused(w *flow.Window, compiled *flow.Compiled, now clock.Instant) (passed int) {
	for w.Take(compiled, now, 1) == rule.Pass {
		passed++
	}
	return passed
}
