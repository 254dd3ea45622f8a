package shed_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/rule"
)

// Whatever has come and whatever is to pass: of two calls of one caller the more important
// one never stands worse, and with a larger share no call stands worse.
func TestMoreImportantCallsNeverStandWorse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64Min(1).Draw(t, "seed")
		priority := rapid.SampledFrom(priorities())
		name := rapid.StringMatching(`[a-z]{0,3}`)
		s := newService(seed)
		for range rapid.IntRange(0, 20).Draw(t, "groups") {
			p, caller := priority.Draw(t, "priority"), name.Draw(t, "caller")
			for range rapid.IntRange(1, 50).Draw(t, "calls") {
				s.call(p, caller)
			}
			for range rapid.IntRange(0, 50).Draw(t, "unseen") {
				s.Refuse(p, false)
			}
		}
		s.now = s.now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "later")))
		small := rapid.Float64Range(0, 1).Draw(t, "share")
		s.Move(s.now, small)
		few := s.Load()

		caller, nonce := rule.String(name.Draw(t, "who")), rapid.Uint64().Draw(t, "nonce")
		standing := func(state shed.State, p rule.Priority) shed.Standing {
			c := rule.Call{Attribute: caller}
			c.SetCaller(p, true)
			return s.Standing(state, &c, nonce)
		}
		worst := shed.Above
		for _, p := range rule.Priorities() {
			now := standing(few, p)
			require.GreaterOrEqual(t, now, worst, "%v stands better than a more important call", p)
			worst = now
		}
	})
}

func priorities() []rule.Priority {
	all := rule.Priorities()
	return all[:]
}

// With the same arrivals, a larger share lets pass all calls that a smaller one does.
func TestLargerShareLetsPassWhatASmallerOneDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64Min(1).Draw(t, "seed")
		few, many := newService(seed), newService(seed)
		for range rapid.IntRange(1, 10).Draw(t, "groups") {
			load := traffic{
				rapid.SampledFrom(priorities()).Draw(t, "priority"),
				rapid.IntRange(1, 300).Draw(t, "calls"), rapid.IntRange(0, 50).Draw(t, "callers"),
			}
			few.passed(load)
			many.passed(load)
		}
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		few.Move(few.now, share)
		many.Move(many.now, rapid.Float64Range(share, 1).Draw(t, "larger share"))
		for i := range 200 {
			c := rule.Call{Attribute: rule.Int(int64(i))}
			c.SetCaller(priorities()[i%shed.Levels], true)
			if few.Standing(few.Load(), &c, uint64(i)) != shed.Below {
				require.NotEqual(t, shed.Below, many.Standing(many.Load(), &c, uint64(i)))
			}
		}
	})
}

// Calls come from many goroutines while the threshold moves: nothing is lost.
func TestConcurrentCallsAreAllCounted(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 5000
	s := shed.New(0)
	s.Start(epoch)
	var done sync.WaitGroup
	var below [goroutines]uint64
	for g := range goroutines {
		done.Go(func() {
			for i := range each {
				c := rule.Call{Attribute: rule.Int(int64(i % 100))}
				p := priorities()[i%shed.Levels]
				c.SetCaller(p, true)
				if state := s.Load(); !state.Active() || s.Standing(state, &c, uint64(i)) == shed.Below {
					s.Refuse(p, state.Active())
					below[g]++
				}
			}
		})
	}
	stop := make(chan struct{})
	var mover sync.WaitGroup
	mover.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.Move(epoch.Add(time.Duration(i)*time.Millisecond), float64(i%10)/10)
				s.RateAbove()
			}
		}
	})
	done.Wait()
	close(stop)
	mover.Wait()
	want := uint64(0)
	for _, n := range below {
		want += n
	}
	refused, _ := s.Totals()
	assert.Equal(t, want, refused)
	perPriority := uint64(0)
	for _, p := range priorities() {
		perPriority += s.Refused(p)
	}
	assert.Equal(t, want, perPriority)
}
