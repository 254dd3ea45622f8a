package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

const (
	dialTimeout = 2 * time.Second
	askTimeout  = 3 * time.Second  // for an answer of an instance
	tellTimeout = 10 * time.Second // for one that switches rules: it may be overloaded just then
	maxAnswer   = 16 << 20         // bytes of it
)

// newRemoteClient returns a client that connects to addresses in the networks only. The check is of the
// address that is connected to, after names are resolved. It waits so long for an answer to begin.
func newRemoteClient(networks []netip.Prefix, wait time.Duration) *http.Client {
	dialer := net.Dialer{Timeout: dialTimeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !within(to.Addr(), networks) {
			return fmt.Errorf("%s is not in the networks that the console may dial", address)
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: 4, IdleConnTimeout: 10 * time.Second,
			ResponseHeaderTimeout: wait, MaxResponseHeaderBytes: 16 << 10,
		},
		// An instance has no reason to send the console elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetch reads what the package inspect answers.
func fetch(ctx context.Context, client *http.Client, at string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	return exchange(client, request, http.StatusOK, func(body io.Reader) error {
		if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(into); err != nil {
			return fmt.Errorf("it does not answer as the package inspect does: %w", err)
		}
		return checkNumbers(into)
	})
}

// exchange sends a request and has the answer read. Every other status than the wanted one is an error.
func exchange(client *http.Client, request *http.Request, status int, read func(body io.Reader) error) error {
	response, err := client.Do(request)
	if err != nil {
		return unanswered(err)
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		var why inspect.Failure
		if json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&why) != nil || why.Error == "" {
			why.Error = "does it serve the handler of the package inspect at the root of this address?"
		}
		return answerError{response.StatusCode, why.Error}
	}
	return read(response.Body)
}

// unansweredError says why a request had no answer.
type unansweredError struct {
	cause  error
	isSent bool // it may be carried out nevertheless: a process that was stopped finds it when it goes on
}

func unanswered(err error) unansweredError {
	if failed := (*url.Error)(nil); errors.As(err, &failed) { // whose text repeats the address
		err = failed.Err
	}
	dial := (*net.OpError)(nil)
	return unansweredError{err, !errors.As(err, &dial) || dial.Op != "dial"}
}

func (e unansweredError) Error() string {
	if timeout := net.Error(nil); e.isSent && errors.As(e.cause, &timeout) && timeout.Timeout() {
		return "it does not answer in time: it may be stopped or overloaded"
	}
	return e.cause.Error()
}

func (e unansweredError) Unwrap() error { return e.cause }

// mayBeDone says whether an order that failed may be carried out nevertheless.
func mayBeDone(err error) bool {
	refused, silent := answerError{}, unansweredError{}
	switch {
	case errors.As(err, &refused):
		return refused.status >= http.StatusInternalServerError
	case errors.As(err, &silent):
		return silent.isSent
	}
	return false
}

// answerError is an answer that says that a question cannot be answered.
type answerError struct {
	status int
	text   string
}

func (e answerError) Error() string { return fmt.Sprintf("it answers %d: %s", e.status, e.text) }
