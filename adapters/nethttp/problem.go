package nethttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

const (
	quotaExceededType  = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaExceededTitle = "Request cannot be satisfied as assigned quota has been exceeded"

	reducedCapacityType  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	reducedCapacityTitle = "Request cannot be satisfied due to temporary server capacity constraints"

	problemType = "application/problem+json"

	// noType is the type of a problem that has no meaning beyond its status.
	noType = "about:blank"
)

// statusClientClosedRequest is the status that servers commonly log for a client that
// did not wait for the response.
const statusClientClosedRequest = 499

// problem is the body of a refusal: problem details by RFC 9457.
type problem struct {
	Type             string   `json:"type"`
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Detail           string   `json:"detail"`
	ViolatedPolicies []string `json:"violated-policies,omitempty"`
}

// WriteProblem answers a request to which [core.Engine.Entry] returned err, with
// a problem body (application/problem+json, RFC 9457):
//
//   - a refusal is answered by its reason: a rate limit with 429, the type
//     "quota-exceeded" of the RateLimit draft and, if the field RateLimit-Policy is set
//     and has it, the policy in "violated-policies";
//     too many calls at once with 503 and the type "temporary-reduced-capacity"; a
//     callee that fails with 503; a caller who may not call with 403; an injected fault
//     with the status that its rule says, or 503;
//   - [core.ErrClosed], and a deadline that ended while the call waited, are a 503;
//   - a context that was cancelled while the call waited is, without a body, a
//     499, for logs: the client has gone;
//   - anything else is a mistake of the program, and a 500.
//
// It names neither the rule nor the resource, see [Fields].
//
// A refusal that a handler passes on so does not make its own call a failed one, see
// [MarkRefused], unless it is an injected fault. The caller sets the header fields, see [Fields.SetRefused]. For refusals that name
// the rule see [Answers].
func WriteProblem(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) {
		w.WriteHeader(statusClientClosedRequest)
		return
	}
	if core.IsRefusal(err) {
		MarkRefused(w)
	}
	p := problemOf(err)
	if policies := strings.Join(w.Header()[policyFieldName], ","); slices.ContainsFunc(p.ViolatedPolicies, func(name string) bool {
		return !strings.Contains(policies, string(appendString(nil, name)))
	}) {
		p.ViolatedPolicies = nil
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.encode()) // fails only when the client has gone
}

func (p problem) encode() []byte {
	body, _ := json.Marshal(p) // of strings and a number: it cannot fail
	return append(body, '\n')
}

func problemOf(err error) problem {
	var block *core.BlockError
	switch {
	case errors.As(err, &block):
		return problemOfBlock(block, Fields{})
	case errors.Is(err, core.ErrClosed):
		return plainProblem(http.StatusServiceUnavailable, "The service is shutting down.")
	case errors.Is(err, context.DeadlineExceeded):
		return plainProblem(http.StatusServiceUnavailable, "The deadline of the request passed while it waited in a queue.")
	}
	return plainProblem(http.StatusInternalServerError, err.Error())
}

// problemOfBlock returns the problem for a refusal.
func problemOfBlock(block *core.BlockError, fields Fields) problem {
	detail := "The call was refused"
	if fields.showsRules() {
		detail = fmt.Sprintf("The call of %q was refused by %s %q", block.Resource, block.Kind, block.Rule)
	}
	switch after, known := retryAfter(block); {
	case block.Reason == rule.Denied:
	case block.Reason == rule.Injected:
		detail += "; the fault is injected on purpose"
	case known:
		detail += fmt.Sprintf("; try again in %v", after)
	case after == rule.Never:
		detail += "; such a call cannot pass under the present rules"
	default:
		detail += "; when such a call can pass is unknown"
	}
	p := plainProblem(cmp.Or(block.Answer.HTTP, StatusOf(block.Reason)), detail+".")
	switch block.Reason {
	case rule.RateLimited:
		p.Type, p.Title = quotaExceededType, quotaExceededTitle
		if !fields.Never {
			p.ViolatedPolicies = []string{fields.policyName(block.Kind, block.Rule)}
		}
	case rule.Overloaded:
		p.Type, p.Title = reducedCapacityType, reducedCapacityTitle
	}
	return p
}

// StatusOf returns the status that a call is answered with that was refused for the
// reason, by a rule that does not say another: 429, 503 or 403.
func StatusOf(reason rule.Reason) int {
	switch reason {
	case rule.Overloaded, rule.Unavailable, rule.Injected:
		return http.StatusServiceUnavailable
	case rule.Denied:
		return http.StatusForbidden
	}
	return http.StatusTooManyRequests
}

// plainProblem is one that its status says all about.
func plainProblem(status int, detail string) problem {
	title := cmp.Or(http.StatusText(status), "Status "+strconv.Itoa(status))
	return problem{Type: noType, Title: title, Status: status, Detail: detail}
}
