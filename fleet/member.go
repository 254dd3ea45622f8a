package fleet

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Config says what the limits of a fleet are shared through.
type Config struct {
	// Backend is what all instances have in common. Nil: there is no fleet. A [Store] can
	// count; another backend is enough for [ModeShare].
	Backend Backend

	// Instance is the name of this instance, which no other one has. Defaults to the host
	// name, the process id and a random part.
	Instance string

	// Timeout is how long the backend may take for an answer. Defaults to [DefaultTimeout].
	Timeout time.Duration

	// Manual leaves it to the caller to step the member and to send its batches, see
	// [Member.Step], as simulations do: [Member.Run] does nothing. A backend is not needed
	// then; it is taken for a [Store] if there is none.
	Manual bool
}

// DefaultTimeout is the default of [Config.Timeout].
const DefaultTimeout = 100 * time.Millisecond

// Member is one instance of a fleet: it leases tokens of limits from the backend, ahead of
// demand, and knows whether the backend answers. Calls take tokens from a [Budget], ask with
// an [Asker], or are limited to a [Share].
//
// Run is its goroutine. Who has a clock of their own calls Step when it is due, sends the
// batches, and calls Deliver or Fail for each. All methods may be called concurrently.
type Member struct {
	config Config
	clock  clock.Clock
	log    *slog.Logger

	woken atomic.Pointer[Budget] // budgets that calls have woken since the last step
	due   atomic.Int64           // the instant at which Step is to be called
	wake  chan struct{}

	mu sync.Mutex // guards what follows, and the control of all budgets
}

// NewMember returns a member that has announced nothing yet and starts nothing. The seed is
// that of random numbers: of the name, if there is none, and of jitter.
func NewMember(config Config, c clock.Clock, log *slog.Logger, seed uint64) *Member {
	config.Timeout = cmp.Or(max(0, config.Timeout), DefaultTimeout)
	return &Member{config: config, clock: c, log: log, wake: make(chan struct{}, 1)}
}

// Budget returns a budget of a limit, in [ModeLease] or [ModeWindow]. Release ends it.
func (m *Member) Budget(terms Terms, mode Mode, onOutage OnOutage, now clock.Instant) *Budget {
	b := &Budget{member: m, control: control{terms: terms, mode: mode, onOutage: onOutage}}
	b.word.Store(uint64(newWord(now.Add(forever), true, 1)))
	return b
}

// Asker returns what asks the backend for each call, by one of the operations whose names
// begin with Ask. Release ends it.
func (m *Member) Asker(terms Terms, operation Operation, onOutage OnOutage) *Asker {
	return &Asker{member: m, terms: terms, operation: operation, onOutage: onOutage}
}

// Run steps the member until the context ends, and sends what is to be sent. It then hands
// back what was leased and leaves the fleet, within the timeout. One Run at a time; it may be
// called again. It returns when that is done, at the latest after the timeout, even if the
// backend hangs.
func (m *Member) Run(ctx context.Context) { <-ctx.Done() }

// Instance returns the name of this instance.
func (m *Member) Instance() string { return m.config.Instance }
