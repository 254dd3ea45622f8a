package hotparam_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
)

func plan(limit float64, period, zone, start string) hotparam.Rule {
	p, _ := calendar.ParsePeriod(period)
	return hotparam.Rule{
		Resource: "r", Param: rule.StringsOf("user"), Limit: limit,
		Calendar: rule.Calendar{Period: p, TimeZone: zone, StartsAt: start},
	}
}

// Whatever the calendar and the calls, a value passes exactly its limit in each window, if it asks
// for as much.
func TestValuesHaveWindowsOfTheCalendar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		of := plan(float64(rapid.IntRange(1, 9).Draw(r, "limit")),
			rapid.SampledFrom([]string{"1d", "2w", "1mo", "3mo"}).Draw(r, "period"),
			rapid.SampledFrom([]string{"", "Europe/Berlin", "America/Sao_Paulo"}).Draw(r, "zone"),
			rapid.SampledFrom([]string{"", "2026-01-31T23:30"}).Draw(r, "start"))
		c, err := calendar.New(of.Calendar.Period, of.Calendar.TimeZone, of.Calendar.StartsAt)
		require.NoError(r, err)
		s := newService(t, of)
		s.t = r
		used := map[int64]int{}
		for range rapid.IntRange(1, 30).Draw(r, "calls") {
			window := c.Number(s.now.Time())
			want := rule.Block
			if used[window] < int(of.Limit) {
				used[window]++
				want = rule.Pass
			}
			require.Equal(r, want, s.ask(user("ann")), "at %v", s.now.Time())
			q := s.limiter.(rule.QuotaReader).QuotaOf(s.call(user("ann"), 1))
			require.EqualValues(r, int(of.Limit)-used[window], q.Remaining)
			require.Equal(r, clock.Instant(c.Start(window+1).UnixNano()), s.now.Add(q.Reset))
			require.Equal(r, c.Start(window+1).Sub(c.Start(window)), q.Window)
			s.now = s.now.Add(time.Duration(rapid.Int64Range(0, int64(of.Calendar.Period.Length())/4).Draw(r, "pause")))
		}
	})
}

func TestFixedWindowOfADuration(t *testing.T) {
	t.Parallel()
	s := newService(t, perUser(func(r *hotparam.Rule) { r.Algorithm, r.Window = hotparam.FixedWindow, time.Minute }))
	s.at(30 * time.Second)
	assert.Equal(t, 10, s.passes(user("a")))
	begin := s.now.Time().Truncate(time.Minute)
	assert.Equal(t, begin.Add(time.Minute).Sub(s.now.Time()), s.retryAfter(user("a")))
	s.now = clock.Instant(begin.Add(time.Minute).UnixNano()) - 1
	assert.Zero(t, s.passes(user("a")))
	s.now++
	assert.Equal(t, 10, s.passes(user("a")))
}

func TestCalendarMistakesOfValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*hotparam.Rule)
		fields []string
	}{
		"sound":         {func(*hotparam.Rule) {}, nil},
		"bucket":        {func(r *hotparam.Rule) { r.Algorithm = hotparam.TokenBucket }, []string{"algorithm"}},
		"duration too":  {func(r *hotparam.Rule) { r.Window = time.Minute }, []string{"window"}},
		"fraction":      {func(r *hotparam.Rule) { r.Limit = 1.5 }, []string{"limit"}},
		"zone":          {func(r *hotparam.Rule) { r.Calendar.TimeZone = "Mars/Base" }, []string{"timeZone"}},
		"concurrency":   {func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 2 }, []string{"window"}},
		"fleet":         {func(r *hotparam.Rule) { r.Scope = rule.ScopeFleet }, nil},
		"fleet, leased": {func(r *hotparam.Rule) { r.Scope, r.Fleet.Mode = rule.ScopeFleet, "lease" }, []string{"fleet.mode"}},
		"fleet, shadow": {func(r *hotparam.Rule) { r.Scope, r.Shadow = rule.ScopeFleet, true }, []string{"shadow"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := plan(5, "1mo", "Europe/Berlin", "2026-01-17")
			test.change(&r)
			var fields []string
			for _, fault := range hotparam.Kind().Faults(r) {
				fields = append(fields, fault.Field)
			}
			assert.Equal(t, test.fields, fields, "%v", hotparam.Kind().Faults(r))
		})
	}
}

// Instances share a month: together they pass its limit, and one that restarts has what is left.
func TestFleetSharesAMonthOfValues(t *testing.T) {
	t.Parallel()
	r := plan(20, "1mo", "Europe/Berlin", "")
	r.Scope = rule.ScopeFleet
	s := newScene(t, r, 3)
	askAll := func() {
		s.run(300*time.Millisecond, func(in *instance, _ int) {
			in.call("ann")
			in.call("bob")
		})
	}
	askAll()
	assert.Len(t, s.passed["ann"], 20)
	assert.Len(t, s.passed["bob"], 20)
	s.clock.Advance(32 * 24 * time.Hour)
	askAll()
	assert.Len(t, s.passed["ann"], 40)
}

// What is left of a month is known as of the last answer, also where nothing was asked yet, and when
// the rule has changed.
func TestQuotaOfAMonthOfTheFleet(t *testing.T) {
	t.Parallel()
	r := plan(20, "1mo", "Europe/Berlin", "")
	r.Scope = rule.ScopeFleet
	s := newScene(t, r, 1)
	in := s.instances[0]
	quota := func() *rule.Quota {
		return in.limiter.(rule.QuotaReader).QuotaOf(rule.Call{Now: s.clock.Now(), Tokens: 1, Attribute: rule.String("ann")})
	}
	q := quota()
	require.NotNil(t, q, "the limit is known")
	assert.True(t, q.Unknown, "what is left of it is not")
	in.call("ann")
	s.run(50*time.Millisecond, nil)
	q = quota()
	require.NotNil(t, q)
	assert.False(t, q.Unknown)
	assert.EqualValues(t, 19, q.Remaining)

	r.Limit = 30
	in.load(r)
	assert.EqualValues(t, 19, quota().Remaining, "of the last answer")
}
