package nethttp

import (
	"errors"
	"fmt"
	"net/http"
)

var (
	// ErrPanicked is the failure of a call whose handler panicked, or whose
	// transport did.
	ErrPanicked = errors.New("nethttp: the handler panicked")

	// ErrCanceled tells [Options.Failure] that the caller had cancelled the call
	// before it was answered: for a server, that the client had left.
	ErrCanceled = errors.New("nethttp: the caller cancelled the call")
)

// StatusError is the failure of a call that was answered with that status.
type StatusError int

func (e StatusError) Error() string {
	return fmt.Sprintf("nethttp: answered with status %d", int(e))
}

// Failure returns what a response of that status tells about the call: a
// [StatusError] from 500 up, else nil. The errors of clients, 4xx, are no
// failures of the resource.
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

// failureOf returns the error to tell the guard of, nil if the call did not fail.
func failureOf(isFailure func(int, error) bool, status int, err error) error {
	switch {
	case !isFailure(status, err):
		return nil
	case err != nil:
		return err
	}
	return StatusError(status)
}
