package access_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// Lists are swapped while many goroutines call: an address that every version denies is
// always refused, one that none denies always passes, and each call sees one version.
func TestSwapsOfAListNeverLetADeniedCallPass(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	versions := []*list.List{
		listOf(t, "192.0.2.1", "10.0.0.0/8"),
		listOf(t, "192.0.2.0/24", "2001:db8::/32"),
		listOf(t, "192.0.0.0/16"),
	}
	s.lists.Set("l", versions[0])
	var calling atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		calling.Add(1)
		group.Go(func() {
			defer calling.Add(-1)
			for range 500 {
				if !assert.Equal(t, rule.Block, decides(s.limiter, rule.String("192.0.2.1"))) ||
					!assert.Equal(t, rule.Pass, decides(s.limiter, rule.String("198.51.100.1"))) {
					return
				}
				runtime.Gosched() // so that the list is swapped between calls
			}
		})
	}
	for swaps := 0; calling.Load() > 0; swaps++ {
		s.lists.Set("l", versions[swaps%len(versions)])
		runtime.Gosched()
	}
	group.Wait()
}

// Calls of many goroutines notice that a list comes and goes. Whatever the order, reports
// alternate and the last one tells how it is.
func TestReportsOfAMissingListAlternate(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	var mu sync.Mutex
	states := []string{access.ListMissing} // newService has reported it
	env := s.env()
	env.Changed = func(_ clock.Instant, from, to, _ string) {
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, states[len(states)-1], from, "after %d changes", len(states))
		states = append(states, to)
	}
	limiters := make([]rule.Limiter, 4)
	for i := range limiters {
		limiters[i] = s.rule.Adopt(s.limiter, env)
	}
	present := listOf(t, "192.0.2.1")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 500 {
				if i == 0 && n%2 == 0 {
					s.lists.Set("l", present)
				} else if i == 0 {
					s.lists.Set("l", nil)
				}
				decides(limiters[i%len(limiters)], rule.String(fmt.Sprint("192.0.2.", i)))
			}
		})
	}
	group.Wait()
	decides(limiters[0], rule.String("192.0.2.1"))
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, access.ListMissing, states[len(states)-1])
}
