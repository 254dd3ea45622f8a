package nethttp

import (
	"strings"
)

// IsEventStream says whether a Content-Type is that of server-sent events: the call of such a response is
// long-lived, see [core.Guard.MarkLongLived]. It is for adapters.
func IsEventStream(contentType string) bool {
	const events = "text/event-stream"
	if len(contentType) < len(events) || !strings.EqualFold(contentType[:len(events)], events) {
		return false
	}
	rest := strings.TrimLeft(contentType[len(events):], " \t")
	return rest == "" || rest[0] == ';'
}
