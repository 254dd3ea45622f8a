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

// Many goroutines take and give back while the rule goes through all its shapes:
// what has passed, less what came back, is the limit in the end, not one more and not one less.
func TestNoTokenIsTakenTwiceWhileAWindowChangesItsShape(t *testing.T) {
	t.Parallel()
	const limit = 500
	windows := []time.Duration{time.Hour, time.Minute, time.Second, time.Hour, 10 * time.Millisecond}
	var present atomic.Pointer[flow.Compiled]
	present.Store(compile(t, flow.Rule{Resource: "r", Limit: limit, Window: time.Hour}, 1))
	w := flow.NewWindow(present.Load(), epoch)
	var now, held atomic.Int64
	now.Store(int64(epoch))
	var callers sync.WaitGroup
	for g := range 8 {
		callers.Go(func() {
			for i := range 5000 {
				compiled, at := present.Load(), clock.Instant(now.Load())
				if w.Take(compiled, at, 1) != rule.Pass {
					continue
				}
				if (g+i)%3 == 0 {
					w.GiveBack(compiled, at, 1)
					continue
				}
				held.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		callers.Wait()
		close(done)
	}()
	for version := uint64(2); ; version++ {
		select {
		case <-done:
			for w.Take(present.Load(), clock.Instant(now.Load()), 1) == rule.Pass {
				held.Add(1)
			}
			assert.Equal(t, int64(limit), held.Load())
			return
		default:
			// Not so far that the shortest of the windows may forget.
			now.Store(int64(epoch.Add(min(9*time.Millisecond, time.Duration(version)*10*time.Microsecond))))
			r := flow.Rule{Resource: "r", Limit: limit, Window: windows[version%uint64(len(windows))]}
			present.Store(compile(t, r, version))
			w.Adopt(present.Load(), clock.Instant(now.Load()))
		}
	}
}
