package inspect

import (
	"cmp"
	"errors"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// orderSpan is how long after an order one that was given before it may come: longer than anybody waits for the answer
// to one. Whose clock is wrong by more is heard after that.
const orderSpan = 15 * time.Second

// errLaterOrder says that an order comes too late.
var errLaterOrder = errors.New("inspect: another order for the same that was given later has come before")

// latestOrders carries orders for the same scope out as if they came as they were given, so that of several that are
// sent to many instances at once the same one is the last on each.
type latestOrders struct {
	mu    sync.Mutex // guards what follows
	given map[string]givenOrder
}

// givenOrder is the latest order for a scope.
type givenOrder struct {
	at   int64 // when it was given
	came clock.Instant
}

// do carries an order out that was given at an instant, 0 if that is not known, unless a later one has come.
func (l *latestOrders) do(scope string, at int64, now clock.Instant, order func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for known, latest := range l.given {
		if now.Sub(latest.came) >= orderSpan {
			delete(l.given, known)
		}
	}
	if at != 0 && at < l.given[scope].at {
		return errLaterOrder
	}
	if err := order(); err != nil {
		return err
	}
	if l.given == nil {
		l.given = make(map[string]givenOrder)
	}
	l.given[scope] = givenOrder{at, now}
	return nil
}

// scopeOf names what an order switches. The kind of a rule may be left out.
func scopeOf(form url.Values) string {
	of := cmp.Or(form.Get("rule"), form.Get("kind"), form.Get("resource"))
	return strconv.FormatBool(form.Has("rule")) + strconv.FormatBool(form.Has("resource")) + of
}

// givenAt returns when an order was given, in nanoseconds since 1970, 0 if it does not say so.
func givenAt(form url.Values) (int64, error) {
	if !form.Has("at") {
		return 0, nil
	}
	at, err := strconv.ParseInt(form.Get("at"), 10, 64)
	if err != nil || at <= 0 {
		return 0, errors.New("at is when the order was given, in nanoseconds since 1970")
	}
	return at, nil
}
