package outgoing

import (
	"errors"
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// RetryOptions configure [RetryBudgets]. The zero value is ready to use.
type RetryOptions struct {
	// Ratio is how many retries a call allows, from 0.001 to 1. Defaults to 0.1.
	Ratio float64

	// MinPerSecond is how many retries a second are allowed beside those, for clients
	// with few calls, up to 1,000,000. A negative value is none. Defaults to 1.
	MinPerSecond float64

	// Burst is how many retries can be saved up, from 1 to 1,000,000. Defaults to 10.
	Burst int

	// MaxTargets is how many targets have a budget of their own, from
	// 1 to 100,000. Those beyond it share one. A target whose budget is full and that
	// was not called for a second or more gives its place to another. Defaults to 1000.
	MaxTargets int

	// Clock is the time. Defaults to [clock.System].
	Clock clock.Clock
}

const (
	defaultRatio        = 0.1
	defaultMinPerSecond = 1
	defaultBurst        = 10

	minRatio    = 0.001
	mostRetries = 1_000_000

	retryUnit = 1_000_000 // parts of a retry that are counted
)

func (o RetryOptions) withDefaults() RetryOptions {
	setDefault(&o.Ratio, defaultRatio)
	setDefault(&o.MinPerSecond, defaultMinPerSecond)
	setDefault(&o.Burst, defaultBurst)
	setDefault(&o.MaxTargets, defaultMaxTargets)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o
}

func (o *RetryOptions) validate() error {
	return errors.Join(
		check(o.Ratio >= minRatio && o.Ratio <= 1, "RetryOptions.Ratio is %v: must be from %v to 1", o.Ratio, minRatio),
		check(o.MinPerSecond <= mostRetries,
			"RetryOptions.MinPerSecond is %v: must be at most %d; a negative one is none", o.MinPerSecond, mostRetries),
		check(o.Burst >= 1 && o.Burst <= mostRetries, "RetryOptions.Burst is %d: must be from 1 to %d", o.Burst, mostRetries),
		check(o.MaxTargets >= 1 && o.MaxTargets <= mostTargets,
			"RetryOptions.MaxTargets is %d: must be from 1 to %d", o.MaxTargets, mostTargets),
	)
}

// retryBudget bounds the retries of one target, see [RetryBudgets]. It is safe for concurrent use, takes no
// lock and allocates nothing.
type retryBudget struct {
	clock     clock.Clock
	deposit   int64 // for a call, in parts of a retry
	perSecond int64 // parts of a retry
	burst     int64 // parts of a retry

	tokens atomic.Int64 // parts of a retry
	filled atomic.Int64 // the instant up to which seconds have been added

	calls, retries, refused atomic.Uint64

	isUsed                atomic.Bool // since idle ones were looked for
	exhausted, notAllowed *Error
}

func newRetryBudget(options *RetryOptions, name string, now clock.Instant) *retryBudget {
	b := &retryBudget{
		clock:      options.Clock,
		deposit:    int64(options.Ratio * retryUnit), // rounded down
		perSecond:  int64(max(options.MinPerSecond, 0) * retryUnit),
		burst:      int64(options.Burst) * retryUnit,
		exhausted:  newError(ErrRetryBudget, "retry budget", name, 0),
		notAllowed: newError(ErrNotRetryable, "no retry", name, 0),
	}
	b.tokens.Store(b.burst)
	b.filled.Store(int64(now))
	b.isUsed.Store(true)
	return b
}

// call counts a call that is not a retry.
func (b *retryBudget) call() {
	b.calls.Add(1)
	b.add(b.deposit)
}

// allow reports whether a retry may be sent, and counts it if so.
func (b *retryBudget) allow() bool {
	b.fill()
	for {
		tokens := b.tokens.Load()
		if tokens < retryUnit {
			b.refused.Add(1)
			return false
		}
		if b.tokens.CompareAndSwap(tokens, tokens-retryUnit) {
			b.retries.Add(1)
			return true
		}
	}
}

// add adds to the tokens, up to burst.
func (b *retryBudget) add(n int64) {
	for {
		tokens := b.tokens.Load()
		if tokens >= b.burst || b.tokens.CompareAndSwap(tokens, min(tokens+n, b.burst)) {
			return
		}
	}
}

// fill adds what the time since the last call of it allows.
func (b *retryBudget) fill() {
	if b.perSecond == 0 {
		return
	}
	now := int64(b.clock.Now())
	for {
		from := b.filled.Load()
		if now <= from {
			return
		}
		n, to := b.between(from, now)
		if n == 0 {
			return
		}
		if b.filled.CompareAndSwap(from, to) {
			b.add(n)
			return
		}
	}
}

// between returns how many parts of a retry the time from one instant to another allows,
// up to burst, and up to when that is: what is less than a part is left for the next time.
func (b *retryBudget) between(from, now int64) (n, to int64) {
	hi, lo := bits.Mul64(uint64(now-from), uint64(b.perSecond))
	if hi >= uint64(time.Second) { // the quotient would not fit
		return b.burst, now
	}
	whole, rest := bits.Div64(hi, lo, uint64(time.Second))
	if whole >= uint64(b.burst) {
		return b.burst, now
	}
	return int64(whole), now - int64(rest)/b.perSecond
}

// retire makes nothing of a budget that is as a new one, so that another one can take its
// place: whoever still has it gets no more than what its own calls add. It returns false if
// the budget is not full.
func (b *retryBudget) retire() bool {
	b.fill()
	from := b.filled.Swap(math.MaxInt64)
	if b.tokens.CompareAndSwap(b.burst, 0) {
		return true
	}
	b.filled.Store(from)
	return false
}

// RetryBudgets bound retries to a share of calls, those of each target alone, so that retries of one that fails
// do not use up those of the others. The budget of a target is a token bucket: each call adds Ratio, each
// second MinPerSecond, and a retry takes 1. It holds at most Burst, and starts full. So in any time of t seconds
// no more retries are allowed than
//
//	Burst + MinPerSecond·t + Ratio·calls
//
// under any number of goroutines. Make them with [NewRetryBudgets], and give them to the options of a client, or
// to [Begin] in a loop of your own. They are safe for concurrent use.
type RetryBudgets struct {
	options RetryOptions
	targets table[retryBudget]
	others  *retryBudget
}

// NewRetryBudgets returns budgets with the options. The error tells all mistakes in them.
func NewRetryBudgets(options RetryOptions) (*RetryBudgets, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	b := &RetryBudgets{options: options}
	create := func(name string, now clock.Instant) *retryBudget { return newRetryBudget(&b.options, name, now) }
	b.targets = table[retryBudget]{most: options.MaxTargets, create: create, isIdle: isIdleBudget}
	b.others = create(others, options.Clock.Now())
	return b, nil
}

// others is the name under which statistics have the targets beyond the bound.
const others = "(other)"

// of returns the budget of a target. Ask for it with each call: the budget of a target
// that is not asked for may be replaced.
func (b *RetryBudgets) of(name string) *retryBudget {
	budget := b.targets.find(name)
	if budget == nil {
		budget = b.targets.at(name, b.options.Clock.Now())
	}
	if budget == nil {
		return b.others
	}
	if !budget.isUsed.Load() {
		budget.isUsed.Store(true)
	}
	return budget
}

// isIdleBudget reports whether a budget was not asked for since this was last called, and
// is full, so that forgetting it changes nothing.
func isIdleBudget(b *retryBudget, _ clock.Instant) bool {
	return !b.isUsed.Swap(false) && b.retire()
}
