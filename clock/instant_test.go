package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func TestInstantArithmetic(t *testing.T) {
	t.Parallel()
	start := clock.Instant(1_700_000_000_000_000_000)
	for _, d := range []time.Duration{0, 1, -1, time.Second, -time.Hour, 24 * 365 * time.Hour} {
		later := start.Add(d)
		assert.Equal(t, d, later.Sub(start), "what was added is what passed")
		assert.Equal(t, -d, start.Sub(later))
		assert.Equal(t, start.Time().Add(d), later.Time(), "the calendar agrees")
	}
}

func TestInstantIsNanosecondsSinceTheEpoch(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.FixedZone("east", 3600))
	assert.Equal(t, at.UTC(), clock.Instant(at.UnixNano()).Time())
	assert.Equal(t, time.UTC, clock.Instant(0).Time().Location())
}

func ExampleInstant() {
	noon := clock.Instant(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	later := noon.Add(90 * time.Second)
	fmt.Println(later.Time().Format(time.TimeOnly), later.Sub(noon))
	// Output: 12:01:30 1m30s
}

// setClock is a clock whose wall clock was set.
type setClock struct {
	*clock.Virtual
	by time.Duration
}

func (c setClock) Until(t time.Time) time.Duration { return c.Virtual.Until(t) - c.by }

func TestTimeOfFollowsTheWallClock(t *testing.T) {
	t.Parallel()
	noon := time.Date(2024, 5, 1, 12, 0, 0, 123, time.UTC)
	for by, want := range map[time.Duration]time.Duration{
		0: 0, time.Hour: time.Hour, -time.Hour: -time.Hour,
		499 * time.Millisecond: 0, -90400 * time.Millisecond: -90 * time.Second,
	} {
		c := setClock{clock.NewVirtual(noon), by}
		c.Advance(time.Minute)
		assert.Equal(t, noon.Add(want), clock.TimeOf(c, clock.Instant(noon.UnixNano())), "set by %v", by)
	}
	assert.WithinDuration(t, time.Now(), clock.TimeOf(clock.System(), clock.System().Now()), time.Minute)
}
