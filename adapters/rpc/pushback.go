package rpc

import (
	"strconv"
	"time"
)

// Pushback returns what the values of the metadata "grpc-retry-pushback-ms" of an answer say:
// after what time to retry the call, 0 if they do not say it, or not to retry it at all. A
// value that is negative or no number says the latter, and so do several values.
func Pushback(values []string) (after time.Duration, noRetry bool) {
	if len(values) == 0 {
		return 0, false
	}
	ms, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil || ms < 0 || len(values) > 1 {
		return 0, true
	}
	return time.Duration(ms) * time.Millisecond, false
}
