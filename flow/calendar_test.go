package flow_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
)

func monthly(limit float64, zone, start string) flow.Rule {
	month := calendar.Period{Count: 1, Unit: calendar.Month}
	return flow.Rule{Limit: limit, Calendar: rule.Calendar{Period: month, TimeZone: zone, StartsAt: start}}
}

func clockAt(t *testing.T, at string) *clock.Virtual {
	t.Helper()
	begin, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	return clock.NewVirtual(begin)
}

func limiterOf(t *testing.T, r flow.Rule, v *clock.Virtual) *flow.Limiter {
	t.Helper()
	l, err := flow.NewLimiter(r, flow.LimiterOptions{Clock: v})
	require.NoError(t, err)
	return l
}

func TestQuotaOfAMonth(t *testing.T) {
	t.Parallel()
	v := clockAt(t, "2026-02-10T12:00:00Z")
	l := limiterOf(t, monthly(100, "Europe/Berlin", ""), v)
	assert.True(t, l.AllowN(60))
	assert.False(t, l.AllowN(41))
	assert.True(t, l.AllowN(40))
	assert.False(t, l.Allow())
	left := l.RetryAfter(1)
	assert.Equal(t, 18*24*time.Hour+11*time.Hour, left, "midnight in Berlin")
	v.Advance(left - 1)
	assert.False(t, l.Allow())
	v.Advance(1)
	assert.True(t, l.AllowN(100), "March")
	assert.False(t, l.Allow())
	assert.Equal(t, 31*24*time.Hour-time.Hour, l.RetryAfter(1), "clocks are put forward in March")
	assert.Equal(t, rule.Never, l.RetryAfter(101))
}

// Ten years of months that begin on the 31st: each passes the limit, from its begin on.
func TestQuotaOfTenYears(t *testing.T) {
	t.Parallel()
	v := clockAt(t, "2016-01-15T00:00:00Z")
	r := monthly(7, "America/New_York", "2016-01-31T09:30")
	l := limiterOf(t, r, v)
	c, err := calendar.New(r.Calendar.Period, r.Calendar.TimeZone, r.Calendar.StartsAt)
	require.NoError(t, err)
	first := c.Number(v.Now().Time())
	for n := first; n < first+120; n++ {
		assert.True(t, l.AllowN(7), "window %d", n)
		assert.False(t, l.Allow(), "window %d", n)
		end := c.Start(n + 1)
		v.Advance(end.Sub(v.Now().Time()) - 1)
		assert.False(t, l.Allow(), "window %d", n)
		v.Advance(1)
	}
}

func TestQuotaIsExactWithManyGoroutines(t *testing.T) {
	t.Parallel()
	v := clockAt(t, "2026-10-24T12:00:00Z")
	r := monthly(1000, "Europe/Berlin", "")
	r.Calendar.Period.Unit = calendar.Day
	l := limiterOf(t, r, v)
	for range 5 {
		var passed atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 300 {
					if l.Allow() {
						passed.Add(1)
					}
				}
			})
		}
		all.Wait()
		assert.Equal(t, int64(1000), passed.Load())
		v.Advance(l.RetryAfter(1))
	}
}

func TestQuotaAllocatesNothing(t *testing.T) {
	v := clockAt(t, "2026-10-24T12:00:00Z")
	l := limiterOf(t, monthly(1000, "", ""), v)
	assert.Zero(t, testing.AllocsPerRun(500, func() { l.Allow() }), "passed")
	l.AllowN(400)
	assert.Zero(t, testing.AllocsPerRun(500, func() { l.Allow() }), "refused")
}

func TestCalendarMistakes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*flow.Rule)
		fields []string
	}{
		"sound":              {func(*flow.Rule) {}, nil},
		"beside a duration":  {func(r *flow.Rule) { r.Window = time.Hour }, []string{"window"}},
		"sliding":            {func(r *flow.Rule) { r.Algorithm = flow.SlidingWindow }, []string{"algorithm"}},
		"bucket":             {func(r *flow.Rule) { r.Algorithm = flow.TokenBucket }, []string{"algorithm"}},
		"fraction":           {func(r *flow.Rule) { r.Limit = .5 }, []string{"limit"}},
		"count":              {func(r *flow.Rule) { r.Calendar.Period.Count = 121 }, []string{"window"}},
		"zone":               {func(r *flow.Rule) { r.Calendar.TimeZone = "Berlin" }, []string{"timeZone"}},
		"start":              {func(r *flow.Rule) { r.Calendar.StartsAt = "2026-02-30" }, []string{"startsAt"}},
		"warm-up":            {func(r *flow.Rule) { r.WarmUp.Period = time.Second }, []string{"warmUp.period"}},
		"zone of a duration": {func(r *flow.Rule) { r.Calendar.Period = calendar.Period{} }, []string{"timeZone"}},
		"fleet":              {func(r *flow.Rule) { r.Scope = rule.ScopeFleet }, nil},
		"fleet, window":      {func(r *flow.Rule) { r.Scope, r.Fleet.Mode = rule.ScopeFleet, "window" }, []string{"fleet.mode"}},
		"fleet, share":       {func(r *flow.Rule) { r.Scope, r.Fleet.Mode = rule.ScopeFleet, "share" }, []string{"fleet.mode"}},
		"fleet, shadow":      {func(r *flow.Rule) { r.Scope, r.Shadow = rule.ScopeFleet, true }, []string{"shadow"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := monthly(5, "Europe/Berlin", "")
			r.Resource = "r"
			test.change(&r)
			var fields []string
			for _, fault := range flow.Kind().Faults(r) {
				fields = append(fields, fault.Field)
			}
			assert.Equal(t, test.fields, fields, "%v", flow.Kind().Faults(r))
		})
	}
}
