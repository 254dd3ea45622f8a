package llm

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// Answer returns what a response of a provider, or the error instead of one, says of it: what
// [outgoing.HTTPAnswer] says, and
//
//   - retry-after-ms, as Retry-After in milliseconds;
//   - x-ratelimit-reset-requests and -tokens, durations such as 6m0s, seconds, or instants of RFC 3339
//     or as seconds since 1970, if the field x-ratelimit-remaining-… is 0;
//   - anthropic-ratelimit-…-reset of requests, tokens, input-tokens and output-tokens, instants of
//     RFC 3339, if anthropic-ratelimit-…-remaining is 0;
//   - a status of 529, with which Anthropic says that it is overloaded, is [outgoing.Rejected];
//   - x-should-retry: false forbids retries.
func Answer(response *http.Response, err error, now time.Time) outgoing.Answer {
	const overloaded = 529
	if err == nil && response != nil && response.StatusCode == overloaded {
		with := *response
		with.StatusCode = http.StatusServiceUnavailable
		response = &with
	}
	a := outgoing.HTTPAnswer(response, err, now)
	if err != nil || response == nil {
		return a
	}
	header := response.Header
	if a.Result == outgoing.Rejected {
		if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
			a.RetryAfter = max(a.RetryAfter, time.Duration(min(ms, maxSeconds*1e3)*float64(time.Millisecond)))
		}
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date // by the clock of the provider
	}
	for _, of := range []string{"requests", "tokens"} {
		if isZero(header.Get("X-Ratelimit-Remaining-" + of)) {
			a.RetryAfter = max(a.RetryAfter, untilReset(header.Get("X-Ratelimit-Reset-"+of), now))
		}
	}
	for _, of := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		if isZero(header.Get("Anthropic-Ratelimit-" + of + "-Remaining")) {
			if at, err := time.Parse(time.RFC3339, header.Get("Anthropic-Ratelimit-"+of+"-Reset")); err == nil {
				a.RetryAfter = max(a.RetryAfter, at.Sub(now))
			}
		}
	}
	if header.Get("X-Should-Retry") == "false" {
		a.NoRetry = true
	}
	return a
}

// maxSeconds is more than any pause that is obeyed.
const maxSeconds = 24 * 60 * 60

func isZero(number string) bool {
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return err == nil && n <= 0
}

// untilReset reads a duration such as 6m0s, seconds, or an instant of RFC 3339 or as seconds since 1970,
// and returns how long it takes from now; 0 if it is none of these.
func untilReset(text string, now time.Time) time.Duration {
	const leastInstant = 1e9 // in 2001
	text = strings.TrimSpace(text)
	if d, err := time.ParseDuration(text); err == nil {
		return max(0, d)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return max(0, at.Sub(now))
	}
	s, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(s > 0):
		return 0
	case s >= leastInstant:
		return max(0, time.Duration(min(s-float64(now.Unix()), maxSeconds)*float64(time.Second)))
	}
	return time.Duration(min(s, maxSeconds) * float64(time.Second))
}

// isStream says whether a response is a stream of events.
func isStream(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// isServed says whether a provider has served a call, so that it costs something.
func isServed(status int) bool { return status >= 200 && status < 300 }

// whole takes an answer that is not streamed.
func (c *call) whole(body []byte) {
	e, ok := readEvent(body)
	if !ok {
		c.unread("the answer is not JSON of a known shape")
		return
	}
	c.answered(e.wholeText())
	u := e.usages()
	if u == nil {
		if c.report.Style != embeddings && e.wholeText() == "" {
			c.unread("the answer has no usage and no text of a known shape")
		}
	} else {
		c.reported(u)
	}
	c.finish()
}

// keptAnswer is an answer that is not streamed, as far as it was read: it is looked at when it is whole.
type keptAnswer struct {
	on    bool
	bytes []byte
	end   jsonEnd
}

// add keeps a part of the answer of a call, unless that becomes too long. The answer is whole when its JSON is,
// although the body may go on, or never end.
func (k *keptAnswer) add(c *call, part []byte) {
	switch {
	case !k.on:
	case len(k.bytes)+len(part) > c.meter.options.MaxResponse:
		*k = keptAnswer{}
		c.unread("the answer is too long")
	default:
		k.bytes = append(k.bytes, part...)
		if k.end.isIn(part) {
			k.take(c)
		}
	}
}

// take takes what has come as the whole answer.
func (k *keptAnswer) take(c *call) {
	body := k.bytes
	*k = keptAnswer{}
	c.whole(body)
}

// jsonEnd finds where an object of JSON ends that comes in parts.
type jsonEnd struct {
	depth           int // of objects and lists that have begun
	inText, escaped bool
}

// isIn says whether the object ends in the next part.
func (j *jsonEnd) isIn(part []byte) bool {
	for _, b := range part {
		switch {
		case j.escaped:
			j.escaped = false
		case j.inText:
			j.escaped, j.inText = b == '\\', b != '"'
		case b == '"':
			j.inText = true
		case b == '{', b == '[':
			j.depth++
		case b == '}', b == ']':
			if j.depth--; j.depth <= 0 {
				return true
			}
		}
	}
	return false
}
