package sharing

import (
	"log/slog"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/sharing/leasedplaces"
	"github.com/penstock-go/penstock/internal/sharing/share"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
)

// Member is one instance of a fleet: it leases tokens of limits from the backend, ahead of
// demand, and knows whether the backend answers. Calls take tokens from a [Budget], ask with
// an [Asker], or are limited to a [Share].
//
// Run is its goroutine. Who has a clock of their own calls Step when it is due, sends the
// batches, and calls Deliver or Fail for each. All methods may be called concurrently.
type Member struct {
	*exchange.Exchange
	limits *limits
}

// NewMember returns a member that has announced nothing yet and starts nothing. The seed is
// that of random numbers: of the name, if there is none, and of jitter.
func NewMember(config fleet.Config, c clock.Clock, log *slog.Logger, seed uint64) *Member {
	l := &limits{}
	x := exchange.NewExchange(config, c, log, seed, l)
	l.Exchange = x
	l.budgets.Exchange, l.askers.Exchange, l.shares.Exchange = x, x, x
	l.places.Exchange, l.values.Exchange = x, x
	return &Member{x, l}
}

// Of returns the member that an engine has made; nil if there is none, or if it is another one.
func Of(m fleet.Member) *Member {
	member, _ := m.(*Member)
	return member
}

// Budget returns a budget of a limit, in [fleet.ModeLease] or [fleet.ModeWindow]. Release ends it.
func (m *Member) Budget(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *lease.Budget {
	return m.limits.budgets.New(nil, terms, mode, onOutage, now)
}

// Asker returns what asks the backend for each call, by one of the operations whose names
// begin with Ask. Release ends it.
func (m *Member) Asker(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *ask.Asker {
	return m.limits.askers.New(nil, terms, operation, onOutage)
}

// Share implements [fleet.Member].
func (m *Member) Share(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) fleet.Share {
	return m.NewShare(terms, onOutage, now)
}

// NewShare returns the part of this instance of a limit. Release ends it.
func (m *Member) NewShare(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) *share.Share {
	return m.limits.shares.New(terms, onOutage, now)
}

// Places returns the places of a limit, of which the instance has none yet. Nothing happens before
// Start. keeps says that a place is to be kept for the first call, however long ago the last one was.
func (m *Member) Places(key string, limit int64, keeps bool, onOutage fleet.OnOutage, user leasedplaces.User, now clock.Instant) *leasedplaces.Places {
	return m.limits.places.New(key, limit, keeps, onOutage, user, now)
}

// ValuePlaces returns the places of values of a limit, of which no more than most have some of their
// own. Terms has the key and the limit that is shown. Release ends it.
func (m *Member) ValuePlaces(terms fleet.Terms, most int, onOutage fleet.OnOutage, now clock.Instant) *valueplaces.Places {
	return m.limits.values.New(terms, most, onOutage, now)
}
