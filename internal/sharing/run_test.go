package sharing_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// backend is a store that can be made to fail.
type backend struct {
	*memory.Store
	mu   sync.Mutex
	fail func(ctx context.Context) error // nil: works
	left []string
}

func (b *backend) set(fail func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = fail
}

func (b *backend) failure(ctx context.Context) error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(ctx)
}

func (b *backend) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	if err := b.failure(ctx); err != nil {
		for i := range replies {
			replies[i].Err = err
		}
		return
	}
	b.Store.Exchange(ctx, requests, replies)
}

func (b *backend) Announce(ctx context.Context, self fleet.Instance, all bool) (fleet.Fleet, error) {
	if err := b.failure(ctx); err != nil {
		return fleet.Fleet{}, err
	}
	return b.Store.Announce(ctx, self, all)
}

func (b *backend) Leave(ctx context.Context, id string) error {
	b.left = append(b.left, id)
	return b.Store.Leave(ctx, id)
}

// running is a member with a goroutine of its own, in a bubble of synctest.
type running struct {
	clock   clock.Clock
	backend *backend
	member  *sharing.Member
	log     logText
	stop    func()
}

func start(mode fleet.Mode) (*running, *lease.Budget) {
	r := &running{clock: clock.System()}
	r.backend = &backend{Store: memory.New(r.clock)}
	r.member = sharing.NewMember(fleet.Config{Backend: r.backend, Instance: "one"}, r.clock,
		slog.New(slog.NewTextHandler(&r.log, nil)), 1)
	budget := r.member.Budget(bucketOf(1000), mode, fleet.OutageLast, r.clock.Now())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.member.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
	return r, budget
}

// call calls 500 times a second, for so long, and returns how many passed.
func (r *running) call(budget *lease.Budget, d time.Duration) (passed int) {
	for end := r.clock.Now().Add(d); r.clock.Now() < end; {
		if budget.Take(r.clock.Now(), 1) {
			passed++
		}
		time.Sleep(2 * ms)
	}
	return passed
}

func TestRunLeasesHandsBackAndLeaves(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		synctest.Test(t, func(t *testing.T) {
			r, budget := start(mode)
			assert.GreaterOrEqual(t, r.call(budget, 2*time.Second), 940)
			known, err := r.member.Fleet(t.Context())
			assert.NoError(t, err)
			if assert.Len(t, known.Instances, 1) && assert.Len(t, known.Instances[0].Limits, 1) {
				assert.InDelta(t, 500, known.Instances[0].Limits[0].Demand, 100)
			}
			r.stop()
			assert.Equal(t, []string{"one"}, r.backend.left)
			_, err = r.member.Fleet(t.Context())
			assert.ErrorIs(t, err, fleet.ErrUnavailable, "it would announce the instance that has left")
			assert.LessOrEqual(t, r.call(budget, 100*ms), 1, "what was leased is handed back")
			time.Sleep(3 * time.Second)
			assert.Zero(t, r.backend.Len())
			assert.Empty(t, r.log.String())
		})
	}
}

func TestMemberRunsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, budget := start(fleet.ModeLease)
		r.call(budget, time.Second)
		r.stop()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.member.Run(ctx) })
		r.call(budget, time.Second)
		assert.GreaterOrEqual(t, r.call(budget, time.Second), 490)
		cancel()
		wg.Wait()
	})
}

func TestBackendThatHangsOrPanicsIsAnOutageWithinTheTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	for name, fail := range map[string]func(context.Context) error{
		"hangs until its context ends": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics":                       func(context.Context) error { panic("broken") },
		"refuses":                      func(context.Context) error { return fleet.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, budget := start(fleet.ModeLease)
				r.call(budget, 2*time.Second)
				r.backend.set(fail)
				began := r.clock.Now()
				r.call(budget, 300*ms)
				status := r.member.Status(r.clock.Now())
				assert.False(t, status.Connected)
				assert.LessOrEqual(t, status.Since.Sub(began), 2*exchange.DefaultTimeout, "a request, and its timeout")
				assert.GreaterOrEqual(t, r.call(budget, time.Second), 400, "the rate granted last")
				r.backend.set(nil)
				r.call(budget, 500*ms)
				assert.True(t, r.member.Status(r.clock.Now()).Connected)
				assert.Equal(t, 2, strings.Count(r.log.String(), "\n"), r.log.String())
				r.backend.set(fail)
				began = r.clock.Now()
				r.stop()
				assert.LessOrEqual(t, r.clock.Now().Sub(began), exchange.DefaultTimeout)
			})
		})
	}
}

// A backend that ignores its context holds its goroutines, of which there are not many, and
// nothing else.
func TestBackendThatHangsForEverHoldsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, budget := start(fleet.ModeLease)
		release := make(chan struct{})
		hanging := 0
		r.backend.set(func(context.Context) error {
			r.backend.mu.Lock()
			hanging++
			r.backend.mu.Unlock()
			<-release
			return fleet.ErrUnavailable
		})
		r.call(budget, 60*time.Second)
		began := r.clock.Now()
		r.stop()
		assert.LessOrEqual(t, r.clock.Now().Sub(began), exchange.DefaultTimeout)
		r.backend.mu.Lock()
		assert.LessOrEqual(t, hanging, 64)
		r.backend.mu.Unlock()
		close(release)
	})
}

func TestBackendThatRefusesToCountIsAnOutageOfItsLimits(t *testing.T) {
	t.Parallel()
	errFull := errors.New("OOM command not allowed")
	synctest.Test(t, func(t *testing.T) {
		r, budget := start(fleet.ModeLease)
		r.call(budget, 2*time.Second)
		r.backend.set(func(context.Context) error { return errFull })
		r.call(budget, 300*ms)
		status := budget.Status(r.clock.Now())
		assert.True(t, status.Outage)
		assert.ErrorIs(t, status.Err, errFull)
		assert.Equal(t, 1, r.member.Status(r.clock.Now()).Refusing)
		assert.GreaterOrEqual(t, r.call(budget, time.Second), 400)
		assert.Equal(t, 1, strings.Count(r.log.String(), "does not count for limits"), r.log.String())
		r.backend.set(nil)
		r.call(budget, 2*time.Second)
		assert.False(t, budget.Status(r.clock.Now()).Outage)
		assert.Equal(t, 1, strings.Count(r.log.String(), "counts for all limits again"), r.log.String())
		r.stop()
	})
}

// registry is a backend that knows instances and cannot count.
type registry struct{ fleet.Backend }

func TestBackendThatCannotCountIsSaidInLogAndStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logText
		c := clock.System()
		m := sharing.NewMember(fleet.Config{Backend: registry{memory.New(c)}}, c, slog.New(slog.NewTextHandler(&log, nil)), 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { m.Run(ctx) })
		shared := m.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageShare, c.Now())
		asker := m.Asker(askTerms(5), fleet.AskFixedWindow, fleet.OutageOpen)
		time.Sleep(time.Second)
		passed := 0
		for range 1000 {
			if shared.Take(c.Now(), 1) {
				passed++
			}
			time.Sleep(ms / 2)
		}
		assert.InDelta(t, 550, passed, 60, "what flows in, and what was there")
		assert.ErrorIs(t, shared.Status(c.Now()).Err, fleet.ErrUnsupported)
		asker.Ask(c.Now(), 1, func(a ask.Answer) { assert.True(t, a.Allowed && a.Outage) })
		assert.Equal(t, 1, strings.Count(log.String(), "does not count for limits"), log.String())
		cancel()
		wg.Wait()
	})
}

func TestCallsOfAskersAreAnsweredWhenTheMemberEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := start(fleet.ModeLease)
		asker := r.member.Asker(askTerms(5), fleet.AskFixedWindow, fleet.OutageClosed)
		r.backend.set(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		var answers []ask.Answer
		var mu sync.Mutex
		done := func(a ask.Answer) { mu.Lock(); answers = append(answers, a); mu.Unlock() }
		asker.Ask(r.clock.Now(), 1, done)
		time.Sleep(10 * ms)
		r.stop()
		asker.Ask(r.clock.Now(), 1, done)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []ask.Answer{{Outage: true}, {Outage: true}}, answers)
	})
}
