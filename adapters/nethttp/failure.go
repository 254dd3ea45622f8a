package nethttp

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrPanicked is the failure of a call whose handler panicked, or whose
// transport did.
var ErrPanicked = errors.New("nethttp: the handler panicked")

// StatusError is the failure of a call that was answered with that status, 500
// or above.
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
