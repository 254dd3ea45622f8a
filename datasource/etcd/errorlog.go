package etcd

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/retry"
)

// errorLog remembers the error that was logged last, so that a failure that
// repeats is logged once. The zero value logs the next error.
type errorLog struct {
	last     error
	loggedAt clock.Instant
}

// shouldLog returns whether to log an error: it is not like the one logged
// last, and at least a second has passed since.
func (l *errorLog) shouldLog(err error, now clock.Instant) bool {
	if l.last != nil && (retry.Alike(l.last, err) || now.Sub(l.loggedAt) < time.Second) {
		return false
	}
	l.last, l.loggedAt = err, now
	return true
}
