package sharing_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
)

// A store can answer announcements and not requests: they may be on different nodes of a
// cluster.
func TestLimitsWithoutAnswersGoOnAlthoughAnnouncementsHaveSome(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		w := newWorld(1, 2*time.Millisecond)
		w.join(bucketOf(1000), mode, fleet.OutageLast, even(4, 2000)...)
		w.run(4 * time.Second)
		w.isDeaf = true
		w.run(5 * time.Second)
		passes, _ := w.total(5*time.Second, 9*time.Second)
		assert.LessOrEqual(t, passes, 4400, mode)
		assert.GreaterOrEqual(t, passes, 2700, "%s: it takes three requests to see it", mode)
		for _, i := range w.instances {
			assert.ErrorIs(t, i.budget.Status(w.clock.Now()).Err, fleet.ErrUnavailable)
		}
		w.isDeaf = false
		w.run(4 * time.Second)
		passes, _ = w.total(11*time.Second, 13*time.Second)
		assert.InDelta(t, 2000, passes, 150, mode)
		assert.LessOrEqual(t, strings.Count(w.log.String(), "\n"), 4*6, "lines of four instances")
	}
}

func TestCallsWithoutAnswersPassNoMoreThanBefore(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := sharing.NewMember(fleet.Config{Manual: true}, c, slog.New(slog.DiscardHandler), 1)
	a := m.Asker(bucketOf(100), fleet.AskTokenBucket, fleet.OutageLast)
	allowed := 0
	for range 2000 {
		a.Ask(c.Now(), 1, func(answer ask.Answer) {
			if answer.Allowed {
				allowed++
			}
		})
		for _, batch := range m.Step(c.Now()) {
			if len(batch.Requests) == 0 {
				m.Deliver(c.Now(), batch)
			}
		}
		c.Advance(5 * time.Millisecond)
	}
	assert.Less(t, allowed, 100, "of 2000 in ten seconds: nothing passed before")
}
