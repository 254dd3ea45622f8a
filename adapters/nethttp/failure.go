package nethttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/penstock-go/penstock/core"
)

// ErrCanceled is passed to [Options.Failure] if the caller had cancelled the
// call before it was answered: on a server, if the client had disconnected.
var ErrCanceled = errors.New("nethttp: the caller cancelled the call")

// StatusError is the failure of a call that was answered with that status.
type StatusError int

func (e StatusError) Error() string {
	return fmt.Sprintf("nethttp: answered with status %d", int(e))
}

// IsFailure is the default of [Options.Failure] and [Transport.Failure]: a call
// failed if err is not nil or the status is 500 or above, unless err is
// [ErrCanceled] or the refusal of a call further down, [core.IsRefusal].
func IsFailure(status int, err error) bool {
	return !isInconclusive(err) && (err != nil || status >= http.StatusInternalServerError)
}

// IsHandlerFailure is [IsFailure] for frameworks whose handlers return errors: a call
// failed if the status is 500 or above, or if err is not nil and the status is not a 4xx,
// which blames the client, unless err is [ErrCanceled] or the refusal of a call further
// down, [core.IsRefusal]. It is for adapters.
func IsHandlerFailure(status int, err error) bool {
	clientError := status >= http.StatusBadRequest && status < http.StatusInternalServerError
	return !clientError && IsFailure(status, err)
}

// MarkOutcome marks how a call ended: as failed if isFailure says so, as one that does
// not count, see [core.Guard.MarkIgnored], if it does not and err is [ErrCanceled] or a
// refusal, [core.IsRefusal]. It is for adapters.
func MarkOutcome(guard *core.Guard, isFailure func(status int, err error) bool, status int, err error) {
	switch {
	case isFailure(status, err):
		guard.MarkFailed()
	case isInconclusive(err):
		guard.MarkIgnored()
	}
}

// isInconclusive returns whether a call that ended with err tells nothing of what was
// called: its caller had left, or a guard further down refused it.
func isInconclusive(err error) bool {
	return errors.Is(err, ErrCanceled) || core.IsRefusal(err)
}
