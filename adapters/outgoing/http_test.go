package outgoing_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// answerOf returns the answer of a response with the fields "Name: value", one a line.
func answerOf(status int, fields string, now time.Time) outgoing.Answer {
	header := http.Header{}
	for line := range strings.SplitSeq(fields, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			header.Add(name, value)
		}
	}
	return outgoing.HTTPAnswer(&http.Response{StatusCode: status, Header: header}, nil, now)
}

func TestHTTPAnswerSaysWhatAResponseMeans(t *testing.T) {
	t.Parallel()
	const never = time.Duration(math.MaxInt64)
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status int
		fields string
		want   outgoing.Answer
	}{
		"served":                    {200, "", outgoing.Answer{Result: outgoing.Accepted}},
		"failed":                    {500, "Retry-After: 5", outgoing.Answer{Result: outgoing.Accepted}},
		"too many":                  {429, "", outgoing.Answer{Result: outgoing.Rejected}},
		"unavailable":               {503, "", outgoing.Answer{Result: outgoing.Rejected}},
		"seconds":                   {429, "Retry-After: 120", comeBackAfter(2 * time.Minute)},
		"seconds around spaces":     {503, "Retry-After:  7 ", comeBackAfter(7 * time.Second)},
		"no time":                   {503, "Retry-After: 0", comeBackAfter(0)},
		"more than a duration has":  {503, "Retry-After: 99999999999999999999", comeBackAfter(never)},
		"negative":                  {503, "Retry-After: -5", comeBackAfter(0)},
		"fraction":                  {503, "Retry-After: 1.5", comeBackAfter(0)},
		"garbage":                   {503, "Retry-After: soon", comeBackAfter(0)},
		"date":                      {503, "Retry-After: Sun, 22 Nov 2026 10:00:30 GMT", comeBackAfter(30 * time.Second)},
		"date by the server's time": {503, "Retry-After: Sun, 22 Nov 2026 11:00:30 GMT\nDate: Sun, 22 Nov 2026 11:00:00 GMT", comeBackAfter(30 * time.Second)},
		"date in the past":          {503, "Retry-After: Sun, 22 Nov 2026 09:00:00 GMT", comeBackAfter(0)},
		"quota left":                {200, `RateLimit: "default";r=50;t=30`, outgoing.Answer{Result: outgoing.Accepted}},
		"no quota left":             {200, `RateLimit: "default";r=0;t=30`, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 30 * time.Second}},
		"one of several":            {200, `RateLimit: "a";r=1;t=90, "b;r=1,";r=0;t=3;pk=:cm9:, "c";t=4; r=0`, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 4 * time.Second}},
		"several lines":             {429, "RateLimit: \"a\";r=0;t=2\nRateLimit: \"b\";r=0;t=1", comeBackAfter(2 * time.Second)},
		"quota in a quoted name":    {200, `RateLimit: "x\";r=0;t=9";r=1;t=1`, outgoing.Answer{Result: outgoing.Accepted}},
		"no time of reset":          {200, `RateLimit: "a";r=0`, outgoing.Answer{Result: outgoing.Accepted}},
		"Retry-After goes first":    {429, "Retry-After: 3\nRateLimit: \"a\";r=0;t=30", comeBackAfter(3 * time.Second)},
		"draft 7":                   {200, "RateLimit: limit=10, remaining=0, reset=50", outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 50 * time.Second}},
		"draft 7, in other order":   {200, "RateLimit: reset=50;x=1,remaining=0;y", outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 50 * time.Second}},
		"draft 7, some left":        {200, "RateLimit: limit=10, remaining=5, reset=50", outgoing.Answer{Result: outgoing.Accepted}},
		"earlier drafts":            {200, "RateLimit-Remaining: 0\nRateLimit-Reset: 8", outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 8 * time.Second}},
		"earlier drafts, some left": {200, "RateLimit-Remaining: 1\nRateLimit-Reset: 8", outgoing.Answer{Result: outgoing.Accepted}},
	} {
		assert.Equal(t, test.want, answerOf(test.status, test.fields, now), name)
	}
	assert.Equal(t, rejected(), outgoing.HTTPAnswer(nil, errors.New("connection refused"), now))
}

func FuzzHTTPAnswer(f *testing.F) {
	f.Add("120", `"default";r=0;t=30`)
	f.Add("Sun, 22 Nov 2026 10:00:30 GMT", `"a\"";r=0;t=1, b`)
	f.Fuzz(func(t *testing.T, retryAfter, rateLimit string) {
		a := outgoing.HTTPAnswer(&http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{
			"Retry-After": {retryAfter}, "RateLimit": {rateLimit}, "Ratelimit": {rateLimit},
		}}, nil, time.Unix(1_700_000_000, 0))
		if a.Result != outgoing.Rejected || a.RetryAfter < 0 {
			t.Errorf("%q, %q: %+v", retryAfter, rateLimit, a)
		}
	})
}
