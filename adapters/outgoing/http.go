package outgoing

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// HTTPAnswer returns what a response, or the error instead of one, says of its target:
//
//   - a status of 429 or 503, and an error instead of a response, is [Rejected]: the
//     target is overloaded, cannot be reached or does not answer in time;
//   - every other status is [Accepted]: whether the target has served the call well is the
//     business of breakers;
//   - Retry-After of a 429 or 503, in seconds or as a date, else the RateLimit field of any
//     response, is [Answer.RetryAfter]: of RateLimit the longest time until a quota is
//     reset of which nothing is left, from the parameters r and t of
//     draft-ietf-httpapi-ratelimit-headers-11, from remaining and reset of draft 7, or from
//     RateLimit-Remaining and RateLimit-Reset of earlier drafts.
//
// What cannot be read is as if it were missing. now is the time of day, for dates if the
// response has none. Errors that tell nothing of the target, such as a call that its
// caller has cancelled, are for the caller of this function to sort out.
func HTTPAnswer(response *http.Response, err error, now time.Time) Answer {
	if err != nil || response == nil {
		return Answer{Result: Rejected}
	}
	a := Answer{Result: Accepted}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		a.Result = Rejected
		a.RetryAfter = retryAfter(response.Header, now)
	}
	if a.RetryAfter == 0 {
		a.RetryAfter = rateLimitReset(response.Header)
	}
	return a
}

// retryAfter returns what the field Retry-After says; 0 if that is nothing or not in the
// future.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if after, ok := wholeSeconds(text); ok {
		return after
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	// The date of the response is that of the same clock.
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return max(at.Sub(now), 0)
}

// rateLimitReset returns when a quota of which nothing is left is reset, 0 if there is none.
func rateLimitReset(header http.Header) time.Duration {
	var longest, former time.Duration
	empty := false
	for _, line := range header.Values("RateLimit") {
		for line != "" {
			var item string
			item, line = cutUnquoted(line, ',')
			if after, ok := resetOf(item); ok {
				longest = max(longest, after)
			}
			switch name, value := formerItem(item); name {
			case "remaining":
				empty = value == "0"
			case "reset":
				former, _ = wholeSeconds(value)
			}
		}
	}
	if longest == 0 && empty {
		longest = former
	}
	if longest == 0 && strings.TrimSpace(header.Get("RateLimit-Remaining")) == "0" {
		longest, _ = wholeSeconds(strings.TrimSpace(header.Get("RateLimit-Reset")))
	}
	return longest
}

// formerItem returns the name and the value of an item of draft 7: remaining=0.
func formerItem(item string) (name, value string) {
	item, _ = cutUnquoted(item, ';')
	name, value, _ = strings.Cut(strings.TrimSpace(item), "=")
	return name, value
}

// resetOf returns the parameter t of an item if its parameter r is 0.
func resetOf(item string) (after time.Duration, ok bool) {
	_, parameters := cutUnquoted(item, ';')
	empty := false
	for parameters != "" {
		var parameter string
		parameter, parameters = cutUnquoted(parameters, ';')
		switch key, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); key {
		case "r":
			empty = value == "0"
		case "t":
			after, ok = wholeSeconds(value)
		}
	}
	return after, ok && empty
}

// cutUnquoted cuts a text at the first separator that is not within a quoted string.
func cutUnquoted(text string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// wholeSeconds returns a number of seconds of digits only. More than a duration can have
// are the longest duration.
func wholeSeconds(text string) (after time.Duration, ok bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds > int64(math.MaxInt64/time.Second) {
		return math.MaxInt64, true
	}
	return time.Duration(seconds) * time.Second, true
}
