package nethttp

import (
	"net/http"
	"time"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// throttled sends a request unless the throttle or the retry budget of its target refuse it.
func (t *Transport) throttled(r *http.Request, p rule.Priority) (*http.Response, error) {
	target := t.target(r)
	if target == "" {
		return t.guarded(r, p, t.base())
	}
	call, err := outgoing.Begin(r.Context(), t.Throttle, t.RetryBudgets, target, p)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	base := &listener{transport: t}
	defer func() { call.End(base.answer) }() // also if Base panics
	return t.guarded(r, p, base)
}

func (t *Transport) target(r *http.Request) string {
	if t.Target != nil {
		return t.Target(r)
	}
	return r.URL.Host
}

// listener sends a request and notes what the response says of its target. Of a request
// that a rule refuses it notes nothing, for it is not sent.
type listener struct {
	transport *Transport
	answer    outgoing.Answer
}

// RoundTrip implements [http.RoundTripper].
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.transport.base().RoundTrip(r)
	switch {
	case err != nil && (core.Canceled(r.Context()) || isInconclusive(err)):
	case l.transport.Answer != nil:
		l.answer = l.transport.Answer(response, err)
	default:
		l.answer = outgoing.HTTPAnswer(response, err, time.Now())
	}
	return response, err
}
