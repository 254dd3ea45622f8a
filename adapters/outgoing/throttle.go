package outgoing

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
)

// ThrottleOptions configure a [Throttle]. The zero value is ready to use.
type ThrottleOptions struct {
	// K is how many calls are sent, of normal priority, for each that the target
	// accepts, more than 1 and at most 100. Less spares the target more; more finds out
	// sooner that it accepts more. Calls of other priorities have 1 + (K − 1)·f, where f is 3 for
	// critical, 2 for high, 1/2 for low and 1/4 for sheddable ones: with the default of
	// 2 that is 4, 3, 1.5 and 1.25. Defaults to 2.
	K float64

	// Window is how far back calls count, from 1 s to 1 h, in 120 buckets. Only the latest
	// part of it is used that has MinCalls answers, at least one bucket and the open
	// one: at a thousand calls a second the last two seconds or less. Defaults to 2
	// minutes.
	Window time.Duration

	// MinCalls is how many answers there must be within Window before calls are
	// throttled, from 1 to 1,000,000. Defaults to 10.
	MinCalls int

	// MaxPause is how long a target can pause its calls at most by what it answers, up to an
	// hour. A negative value ignores what targets say. Defaults to 1 minute.
	MaxPause time.Duration

	// MaxTargets is how many targets have state of their own, from 1 to 100,000.
	// Targets beyond it are not limited, and are counted in
	// [ThrottleStats.Untracked]; one takes the place of a target that was not called
	// for the length of the window. A target takes about 3 KiB. Defaults to 1000.
	MaxTargets int

	// Seed makes it repeatable which calls are refused. Defaults to a random one.
	Seed uint64

	// Clock is the time. Defaults to [clock.System].
	Clock clock.Clock
}

const (
	defaultK          = 2
	defaultWindow     = 2 * time.Minute
	defaultMinCalls   = 10
	defaultMaxPause   = time.Minute
	defaultMaxTargets = 1000

	maxK          = 100
	minWindow     = time.Second
	maxWindow     = time.Hour
	mostMinCalls  = 1_000_000
	maxMaxPause   = time.Hour
	mostTargets   = 100_000
	maxRefusal    = 0.99        // of the calls: one in a hundred probes the target …
	probeInterval = time.Second // … and one that is due after this time
)

// Throttle is the adaptive throttle of clients: it refuses a call of a target with the
// probability
//
//	(requests − K·accepts) / (requests + 1)
//
// where requests are the calls of late, with those that were refused here, and accepts
// those that the target has accepted. While it accepts more than 1/K of them, none is
// refused. A target that accepts less than it is asked gets K times what it accepts. One
// call in a hundred passes however many are rejected, and at least one a second, so that a
// target that has recovered is noticed.
//
// A target that says when it wants to be called again is not called before, but for calls
// of a higher priority than the one that it said that to: see [Answer.RetryAfter]. After
// the pause calls come back over a fifth of its length, at most 10 s, and not all at once.
//
// Make it with [NewThrottle]. It is safe for concurrent use. A call that passes takes no
// lock and allocates nothing.
type Throttle struct {
	options ThrottleOptions
	clock   clock.Clock
	k       [rule.PriorityLevels]float64 // by level
	targets table[target]
}

// NewThrottle returns a throttle. The error tells all mistakes in the options.
func NewThrottle(options ThrottleOptions) (*Throttle, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	t := &Throttle{options: options, clock: options.Clock}
	for level, factor := range [rule.PriorityLevels]float64{0.25, 0.5, 1, 2, 3} {
		t.k[level] = 1 + (options.K-1)*factor
	}
	t.targets = table[target]{most: options.MaxTargets, create: t.newTarget, isIdle: t.isIdle}
	return t, nil
}

func (o ThrottleOptions) withDefaults() ThrottleOptions {
	setDefault(&o.K, defaultK)
	setDefault(&o.Window, defaultWindow)
	setDefault(&o.MinCalls, defaultMinCalls)
	setDefault(&o.MaxPause, defaultMaxPause)
	setDefault(&o.MaxTargets, defaultMaxTargets)
	if o.Seed == 0 {
		o.Seed = rand.Uint64() //nolint:gosec // chooses which calls are refused, no secret
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o *ThrottleOptions) validate() error {
	return errors.Join(
		check(o.K > 1 && o.K <= maxK, "ThrottleOptions.K is %v: must be more than 1 and at most %d", o.K, maxK),
		check(o.Window >= minWindow && o.Window <= maxWindow,
			"ThrottleOptions.Window is %v: must be from %v to %v", o.Window, minWindow, maxWindow),
		check(o.MinCalls >= 1 && o.MinCalls <= mostMinCalls,
			"ThrottleOptions.MinCalls is %d: must be from 1 to %d", o.MinCalls, mostMinCalls),
		check(o.MaxPause <= maxMaxPause,
			"ThrottleOptions.MaxPause is %v: must be at most %v; a negative one ignores what targets say", o.MaxPause, maxMaxPause),
		check(o.MaxTargets >= 1 && o.MaxTargets <= mostTargets,
			"ThrottleOptions.MaxTargets is %d: must be from 1 to %d", o.MaxTargets, mostTargets),
	)
}

func check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("outgoing: "+format, args...)
}

// allow decides on a call of a target. The target is nil if there is no place for it.
func (t *Throttle) allow(name string, p rule.Priority) (*target, *Error) {
	now := t.clock.Now()
	of := t.targets.at(name, now)
	if of == nil {
		return nil, nil
	}
	level := p.Level()
	return of, of.allow(now, level, t.k[level])
}

// end counts the end of a call that allow has let pass.
func (t *Throttle) end(of *target, p rule.Priority, a Answer) {
	if a.Result != Ignored {
		of.window.end(a.Result == Accepted)
	}
	if a.RetryAfter > 0 && t.options.MaxPause > 0 {
		of.pause(t.clock.Now(), p.Level(), min(a.RetryAfter, t.options.MaxPause))
	}
}

func (t *Throttle) newTarget(name string, now clock.Instant) *target {
	of := &target{name: name, throttled: newError(ErrThrottled, "throttle", name, 0)}
	of.random.Store(splitmix.Mix(t.options.Seed ^ hash(name)))
	of.window.init(t.options.Window, t.options.MinCalls, now)
	of.called.Store(of.window.open.Load())
	return of
}

// isIdle reports whether a target was not called for the length of the window, so that
// forgetting it changes nothing.
func (t *Throttle) isIdle(of *target, now clock.Instant) bool {
	return of.window.number(now)-of.called.Load() >= parts && of.pausedFor(now) == 0
}

// hash is such that a seed gives every target the same random numbers in every run.
func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // never fails
	return h.Sum64()
}

// unit returns a number from 0 to below 1.
func unit(x uint64) float64 {
	const bits = 53
	return float64(x>>(64-bits)) / (1 << bits)
}
