package isolation_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// All calls that get a place at once are woken, also those behind one whose wake-up fails, and no place
// is free while a call waits.
func TestWakeUpThatFailsKeepsNoOtherCallWaiting(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){"panic": func() { panic("wake") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := isolation.Kind()
			r := isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Minute}
			l := kind.Of(r).WithDefaults().NewLimiter(rule.Env{Version: 1}).(rule.Queue)
			call := rule.Call{Tokens: 1}
			_, decision := l.Acquire(call)
			require.Equal(t, rule.Pass, decision)
			woken := 0
			var waiters []rule.Waiter
			for range 5 {
				w, _, decision := l.Join(call, rule.Patience{Until: 1 << 62, Wake: func() {
					woken++
					fail()
				}})
				require.Equal(t, rule.Wait, decision)
				waiters = append(waiters, w)
			}
			r.Limit = 4
			next := kind.Of(r).WithDefaults().Adopt(l, rule.Env{Version: 2})
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				next.(rule.Activator).Activate(1)
			}()
			<-done
			assert.Equal(t, 3, woken)
			assert.Equal(t, []float64{4, 2, 4, 4}, next.Status(1).Gauges[:4])
			for _, w := range waiters[:3] {
				_, _, decision := w.Poll(1)
				assert.Equal(t, rule.Pass, decision)
			}
		})
	}
}
