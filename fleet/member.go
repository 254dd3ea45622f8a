package fleet

import (
	"context"

	"github.com/penstock-go/penstock/clock"
)

// Member is this instance of the fleet, as an engine makes it, see core.Engine.Fleet: how it is, who the
// others are, and parts of limits for programs that divide a limit of their own. All methods may be called
// concurrently.
type Member interface {
	// Instance returns the name of this instance.
	Instance() string

	// Status tells how the member is at now.
	Status(now clock.Instant) Status

	// Fleet asks the backend for all instances and what they use; this announces the instance. Its
	// error is that of the backend, or [ErrUnavailable] when the context ends or the timeout passes
	// before, and after the engine has been closed, when the instance has left.
	Fleet(ctx context.Context) (Fleet, error)

	// Share returns this instance's part of a limit, as [ModeShare] divides it. Release ends it.
	Share(terms Terms, onOutage OnOutage, now clock.Instant) Share
}

// Share is the part of a limit that this instance may use by itself, see [ModeShare]. Who decides on calls
// has a limiter of its own, whose limit is Limit, and counts all calls. All parts together never exceed the
// limit. An instance that joins waits for the others to make room. All methods may be called concurrently.
type Share interface {
	// Limit returns the tokens per window that this instance may use now: 0 if none, infinite if all
	// calls pass, as [OutageOpen] says.
	Limit() float64

	// Count counts a call that asked for n tokens at now, as demand. A call that was counted and takes
	// nothing after all is taken back with -n.
	Count(now clock.Instant, n int32, passed bool)

	// Change has the limit go on with other terms, of the same key.
	Change(terms Terms, onOutage OnOutage, now clock.Instant)

	// Release says that nobody will use the share any more. The limiter must refuse from then on.
	Release(now clock.Instant)
}
