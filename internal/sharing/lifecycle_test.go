package sharing_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// A backend that ignores its context still holds goroutines of the first Run when the second
// one has begun.
func TestRunIsNotEndedByTheOneBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, budget := start(fleet.ModeLease)
		r.call(budget, time.Second)
		release := make(chan struct{})
		r.backend.set(func(context.Context) error { <-release; return fleet.ErrUnavailable })
		r.call(budget, 300*ms)
		r.stop()
		r.backend.set(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.member.Run(ctx) })
		r.call(budget, time.Second)
		close(release)
		r.call(budget, time.Second)
		assert.True(t, r.member.Status(r.clock.Now()).Connected)
		assert.GreaterOrEqual(t, r.call(budget, time.Second), 490)
		cancel()
		wg.Wait()
	})
}

func TestReleasedLimitIsForgottenWhenTheMemberHasEnded(t *testing.T) {
	t.Parallel()
	for _, releaseFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, budget := start(fleet.ModeLease)
			r.call(budget, time.Second)
			if releaseFirst {
				budget.Release(r.clock.Now())
			}
			r.stop()
			budget.Release(r.clock.Now())
			assert.Empty(t, r.member.Status(r.clock.Now()).Limits)
			time.Sleep(3 * time.Second)
			assert.Zero(t, r.backend.Len(), "what was leased is handed back")
		})
	}
}

func TestReleasedBudgetHandsBackWhatIsGrantedLater(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		s := newStepped(t)
		budget := s.member.Budget(bucketOf(1000), mode, fleet.OutageLast, s.now())
		for range 5 {
			budget.Take(s.now(), 1)
		}
		s.clock.Advance(10 * ms)
		batches := s.member.Step(s.now())
		budget.Release(s.now())
		var granted int64
		for _, batch := range batches {
			require.NoError(t, batch.Send(t.Context(), s.store))
			for _, reply := range batch.Replies {
				granted += reply.Granted
			}
			s.member.Deliver(s.now(), batch)
		}
		require.Positive(t, granted, mode)
		assert.False(t, budget.Take(s.now(), 1), "mode %s: it was released", mode)
		s.run(100 * ms)
		var back int64
		for _, request := range s.sent {
			back += request.Back
		}
		assert.Equal(t, granted, back, mode)
		assert.Empty(t, s.member.Status(s.now()).Limits, mode)
	}
}

func TestErrorForAReleasedLimitIsNotCountedForEver(t *testing.T) {
	t.Parallel()
	errFull := errors.New("OOM command not allowed")
	s := newStepped(t)
	asker := s.member.Asker(askTerms(5), fleet.AskFixedWindow, fleet.OutageLast)
	asker.Ask(s.now(), 1, func(ask.Answer) {})
	budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, s.now())
	for range 5 {
		budget.Take(s.now(), 1)
	}
	s.clock.Advance(10 * ms)
	batches := s.member.Step(s.now())
	asker.Release(s.now())
	s.clock.Advance(exchange.DefaultTimeout)
	s.isDown = true
	s.step()
	budget.Release(s.now())
	s.run(10 * ms)
	s.isDown = false
	for _, batch := range batches { // the answers come late
		for i := range batch.Replies {
			batch.Replies[i].Err = errFull
		}
		s.member.Deliver(s.now(), batch)
	}
	s.run(time.Second)
	assert.Zero(t, s.member.Status(s.now()).Refusing)
}

// memberLog looks at the member for each line.
type memberLog struct {
	slog.Handler
	t      *testing.T
	member *sharing.Member
	lines  int
}

func (l *memberLog) Handle(context.Context, slog.Record) error {
	l.lines++
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		l.member.Status(0)
	}()
	select {
	case <-looked:
	case <-time.After(time.Minute):
		l.t.Error("a line is logged with the mutex of the member held")
	}
	return nil
}

func TestMemberLogsWithoutItsMutex(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	handler := &memberLog{Handler: slog.NewTextHandler(&s.log, nil), t: t}
	s.member = sharing.NewMember(fleet.Config{Manual: true, Instance: "one"}, s.clock, slog.New(handler), 1)
	handler.member = s.member
	budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, s.now())
	budget.Take(s.now(), 1)
	s.isDown = true
	s.run(time.Second)
	s.isDown = false
	s.run(time.Second)
	assert.Equal(t, 2, handler.lines)
}
