package lease_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
)

// stepped is a member that is stepped by hand, whose batches are answered at once.
type stepped struct {
	*sharing.Member
	clock *clock.Virtual
	store *memory.Store
	sent  []fleet.Request
	got   []fleet.Reply
}

func newStepped() *stepped {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := sharing.NewMember(fleet.Config{Manual: true, Instance: "one"}, c, slog.New(slog.DiscardHandler), 1)
	return &stepped{Member: m, clock: c, store: memory.New(c)}
}

// run lets time pass.
func (s *stepped) run(d time.Duration) {
	for end := s.clock.Now().Add(d); ; s.clock.Advance(min(time.Millisecond, end.Sub(s.clock.Now()))) {
		for s.Due() <= s.clock.Now() {
			for _, batch := range s.Step(s.clock.Now()) {
				_ = batch.Send(context.Background(), s.store)
				s.sent, s.got = append(s.sent, batch.Requests...), append(s.got, batch.Replies...)
				s.Deliver(s.clock.Now(), batch)
			}
		}
		if s.clock.Now() >= end {
			return
		}
	}
}

// Calls give tokens of a bucket back just when the next one begins: no more of the next one is
// there than was granted of it.
func TestGiveBackAtTheEndOfABucketAddsNothingToTheNext(t *testing.T) {
	t.Parallel()
	const length = 100 * time.Millisecond
	terms := fleet.Terms{Key: "flow/a", Limit: 1e6, Window: length, Buckets: 1}
	for range 400 {
		s := newStepped()
		budget := s.Budget(terms, fleet.ModeWindow, fleet.OutageClosed, s.clock.Now())
		s.clock.Advance(length - time.Duration(s.clock.Now().Time().UnixNano())%length)
		for range 150 { // until the middle of the second bucket
			budget.Take(s.clock.Now(), 100)
			s.run(time.Millisecond)
		}
		var tokens atomic.Int64 // to be given back, of which there are enough
		taken := s.clock.Now()
		for budget.Take(taken, 100) {
			tokens.Add(100)
		}
		begins := taken.Add(length / 2)
		s.run(begins.Sub(s.clock.Now()) - time.Millisecond)
		given := tokens.Load() - 100
		var wg sync.WaitGroup
		var stop atomic.Bool
		for range 2 {
			wg.Go(func() {
				for !stop.Load() && tokens.Add(-1) >= 0 {
					budget.GiveBack(taken, 1)
				}
			})
		}
		for tokens.Load() > given {
			runtime.Gosched()
		}
		s.run(10 * time.Millisecond)
		stop.Store(true)
		wg.Wait()
		s.run(10 * time.Millisecond)
		var granted int64
		for i, reply := range s.got {
			if reply.Bucket == begins.Time().UnixMicro() {
				granted += reply.Granted
			}
			if s.sent[i].BackTo == begins.Time().UnixMicro() {
				granted -= s.sent[i].Back
			}
		}
		assert.Positive(t, granted)
		assert.LessOrEqual(t, budget.Leased(), granted)
	}
}
