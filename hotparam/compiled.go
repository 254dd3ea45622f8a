package hotparam

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
)

// compiled is what all limiters of one version of a rule have in common.
type compiled struct {
	rule    Rule
	version uint64
	values  *values

	// Values have a class each, from which their limit follows. Class 0 has that of the
	// rule.
	limits   []float64 // of the classes
	exact    []int     // the classes of values.exact
	patterns []int     // the classes of values.patterns

	rates *table.Rates       // of the classes; nil unless the algorithm is TokenBucket or Throttle
	now   []*table.Rate      // of the classes, for calls that do not wait
	terms *table.WindowTerms // nil unless it is SlidingWindow or FixedWindow

	calendar *calendar.Calendar // that has the windows; nil if there is none

	// keeps is how long after a call the state of its value is as new, at the latest.
	keeps   time.Duration
	slowest float64 // the longest time that a token takes, in nanoseconds

	cellsEach int // cells of each limit that values without a slot can have

	mu sync.Mutex
	// The mutex guards the rest.
	states *states // of all versions of the rule; nil until there is a limiter
}

// compile compiles a rule that is valid and complete.
func compile(r Rule, version uint64) *compiled {
	c := &compiled{rule: r, version: version, limits: []float64{r.limit()}, calendar: r.Calendar.Compile()}
	c.values, _ = parseValues(&r)
	for _, limit := range c.values.exact {
		c.exact = append(c.exact, c.classOf(limit))
	}
	for i := range c.values.patterns {
		c.patterns = append(c.patterns, c.classOf(c.values.patterns[i].limit))
	}
	switch r.Algorithm {
	case TokenBucket, Throttle:
		c.rates, _ = compileRates(&r, version, c.limits)
		for class := range c.limits {
			c.now = append(c.now, c.rates.Class(class).Immediate())
		}
	case SlidingWindow, FixedWindow:
		c.compileWindow()
	}
	classes := []int{0}
	for _, class := range c.patterns {
		if !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
	}
	c.cellsEach = max(1, cells/len(classes))
	for _, limit := range c.limits {
		c.keeps = max(c.keeps, r.keeps(limit))
		if limit > 0 {
			c.slowest = max(c.slowest, float64(r.Calendar.Length(r.Window))/limit)
		}
	}
	return c
}

// classOf returns the class of a limit.
func (c *compiled) classOf(limit float64) int {
	if i := slices.Index(c.limits, limit); i >= 0 {
		return i
	}
	c.limits = append(c.limits, limit)
	return len(c.limits) - 1
}

// limit is that of most values.
func (r *Rule) limit() float64 {
	if r.Concurrency != 0 {
		return float64(r.Concurrency)
	}
	return r.Limit
}

// burst returns the burst that goes with a limit, that of the rule or of one of its
// values: the one that is given, or that of the limit itself.
func (r *Rule) burst(limit float64) float64 {
	if r.Burst == 0 {
		return defaultBurst(limit)
	}
	return r.Burst
}

// compileRates compiles limits of token buckets or throttles. The error says that they
// differ by too much.
func compileRates(r *Rule, version uint64, limits []float64) (*table.Rates, error) {
	algorithm := table.TokenBucket
	if r.Algorithm == Throttle {
		algorithm = table.Throttle
	}
	list := make([]table.Limit, len(limits))
	for i, limit := range limits {
		list[i] = table.Limit{Limit: limit, Window: r.Window, Burst: r.burst(limit), MaxWait: r.MaxWait}
	}
	return table.CompileRates(version, algorithm, list)
}

// keeps returns how long after a call the state of a value with that limit is as new, at
// the latest.
func (r *Rule) keeps(limit float64) time.Duration {
	return max(r.fullAfter(limit), r.Penalty.Within+r.Penalty.For)
}

// fullAfter returns how long a value that has used all of a limit takes to be as new again.
func (r *Rule) fullAfter(limit float64) time.Duration {
	switch {
	case limit == 0:
	case r.Algorithm == TokenBucket:
		return durationOf(r.burst(limit) / limit * float64(r.Window))
	case r.Algorithm == Throttle:
		return r.MaxWait + durationOf(max(1, 1/limit)*float64(r.Window))
	case r.countsWhole():
		return r.outlasts()
	}
	return 0
}

// durationOf returns nanoseconds, rounded up, as a duration.
func durationOf(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return time.Duration(math.Ceil(nanoseconds))
}

// statesFor returns the states of the rule's values, for a new limiter of this version.
// They are those of the limiter that it goes on from, if there is one.
func (c *compiled) statesFor(present *states, env rule.Env) *states {
	c.mu.Lock()
	defer c.mu.Unlock()
	if present == nil {
		present = c.states
	}
	if present == nil {
		present = newStates(env.Seed)
		if c.rule.Algorithm == Prepaid {
			present.holders = table.NewHolders(c.rule.MaxValues)
			present.balances.Held = func(holder uint64, balances int64) {
				present.holders.AddLast(table.Source(holder), balances)
			}
		}
	}
	c.states = present
	return present
}

// addTo returns an instant so much later, at most the last one there is.
func addTo(now clock.Instant, d time.Duration) clock.Instant {
	if then := now.Add(d); then >= now {
		return then
	}
	return math.MaxInt64
}

// addDuration returns the sum, at most half of the longest duration there is.
func addDuration(a, b time.Duration) time.Duration {
	return time.Duration(min(uint64(a)+uint64(b), math.MaxInt64/2))
}
