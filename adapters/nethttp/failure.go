package nethttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrPanicked is the failure of a call whose handler panicked, or whose
	// transport did.
	ErrPanicked = errors.New("nethttp: the handler panicked")

	// ErrCanceled is passed to [Options.Failure] if the caller had cancelled the
	// call before it was answered: on a server, if the client had disconnected.
	ErrCanceled = errors.New("nethttp: the caller cancelled the call")
)

// StatusError is the failure of a call that was answered with that status.
type StatusError int

func (e StatusError) Error() string {
	return fmt.Sprintf("nethttp: answered with status %d", int(e))
}

// Failure returns a [StatusError] if the status is 500 or above, else nil. Client
// errors, 4xx, are not failures of the resource.
func Failure(status int) error {
	if status >= http.StatusInternalServerError {
		return StatusError(status)
	}
	return nil
}

// IsFailure is the default of [Options.Failure] and [Transport.Failure]: a call
// failed if err is not nil or the status is 500 or above, unless err is
// [ErrCanceled].
func IsFailure(status int, err error) bool {
	return !errors.Is(err, ErrCanceled) && (err != nil || status >= http.StatusInternalServerError)
}

// Canceled reports whether ctx was cancelled before its deadline, if it has one: the
// caller no longer waits for the answer. At the deadline and later it returns false,
// even if ctx was cancelled before: a call that is still under way then took too long.
func Canceled(ctx context.Context) bool {
	if !errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > 0
}

// failureOf returns the error for Guard.Fail, nil if the call did not fail.
func failureOf(isFailure func(int, error) bool, status int, err error) error {
	switch {
	case !isFailure(status, err):
		return nil
	case err != nil:
		return err
	}
	return StatusError(status)
}
