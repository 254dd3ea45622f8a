package sharing_test

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// anyReply draws an answer that a broken store may give.
func anyReply(t *rapid.T) fleet.Reply {
	number := rapid.OneOf(
		rapid.Int64Range(-3, 300), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 1 << 40}),
	)
	wait := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(number.Draw(t, "wait")) })
	return fleet.Reply{
		Granted: number.Draw(t, "granted"), Delay: wait.Draw(t, "delay"), Valid: wait.Draw(t, "valid"),
		Retry: wait.Draw(t, "retry"), Bucket: number.Draw(t, "bucket"), Remaining: number.Draw(t, "remaining"),
		Reset: wait.Draw(t, "reset"),
		State: rapid.SampledFrom([]string{"", "-1", "9223372036854775807", "1x1:1:1", "0x0:0:,,", "x"}).Draw(t, "state"),
	}
}

func TestAbsurdRepliesGrantNothingThatWasNotAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		m := sharing.NewMember(fleet.Config{Manual: true}, c, slog.New(slog.DiscardHandler), 1)
		terms := bucketOf(1000)
		leased := m.Budget(terms, fleet.ModeLease, fleet.OutageClosed, c.Now())
		terms.Key = "flow/b"
		window := m.Budget(terms, fleet.ModeWindow, fleet.OutageClosed, c.Now())
		terms.Key = "flow/c"
		asker := m.Asker(terms, fleet.AskThrottle, fleet.OutageClosed)
		asked, passed := int64(0), int64(0)
		allowed, answers, calls := 0, 0, 0
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range 30 {
				for _, b := range []*lease.Budget{leased, window} {
					if b.Take(c.Now(), 1) {
						passed++
					}
				}
			}
			if asker.DeniedFor(c.Now(), 1) == 0 {
				calls++
				asker.Ask(c.Now(), 1, func(a ask.Answer) {
					answers++
					if a.Allowed {
						allowed++
					}
					require.GreaterOrEqual(t, a.Wait, time.Duration(0))
					require.LessOrEqual(t, a.Wait, time.Second, "nobody may wait longer than the terms say")
				})
			}
			for _, batch := range m.Step(c.Now()) {
				for i := range batch.Requests {
					if batch.Requests[i].Operation <= fleet.LeaseWindow {
						asked += batch.Requests[i].Want
					}
					batch.Replies[i] = anyReply(t)
				}
				batch.Fleet.Count = rapid.SampledFrom([]int{0, -5, 1, math.MaxInt}).Draw(t, "count")
				m.Deliver(c.Now(), batch)
			}
			c.Advance(time.Duration(rapid.IntRange(1, 50).Draw(t, "ms")) * time.Millisecond)
			require.Greater(t, m.Due(), clock.Instant(0))
			m.Status(c.Now())
		}
		c.Advance(time.Second)
		m.Step(c.Now()) // without an answer
		// Calls may pass on debt: a token for each, and what 10 ms of their demand are.
		require.LessOrEqual(t, passed, asked+40*20)
		require.LessOrEqual(t, answers, calls)
	})
}

func TestStoresThatGrantMoreThanWasAskedAreInError(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := sharing.NewMember(fleet.Config{Manual: true}, c, slog.New(slog.DiscardHandler), 1)
	b := m.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageClosed, c.Now())
	b.Take(c.Now(), 1)
	for range 3 {
		c.Advance(20 * time.Millisecond)
		for _, batch := range m.Step(c.Now()) {
			for i := range batch.Requests {
				batch.Replies[i] = fleet.Reply{Granted: batch.Requests[i].Want + 1_000_000}
			}
			m.Deliver(c.Now(), batch)
		}
	}
	passed := 0
	for range 10_000 {
		if b.Take(c.Now(), 1) {
			passed++
		}
	}
	require.Less(t, passed, 100)
	require.ErrorContains(t, b.Status(c.Now()).Err, "granted")
}
