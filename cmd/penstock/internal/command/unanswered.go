package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// unanswered returns why a request to a service had no answer, and what somebody can do. A request that changes
// something and was sent may be carried out nevertheless: a process that was stopped finds it when it goes on.
func unanswered(err error, method string) error {
	if failed, ok := errors.AsType[*url.Error](err); ok { // whose text repeats the address
		err = failed.Err
	}
	dial, isDial := errors.AsType[*net.OpError](err)
	switch isSent := !isDial || dial.Op != "dial"; {
	case isSent && method == http.MethodPost && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in %v (%w): it may be stopped or overloaded, and do it later: look before you try again", engineTimeout, err)
	case isSent && method == http.MethodPost:
		return fmt.Errorf("no answer (%w): it may have done it nevertheless: look before you try again", err)
	case isSent && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time (%w): it may be stopped or overloaded", err)
	}
	return fmt.Errorf("%w: does the service run, and listen there?", err)
}
