package nethttp

import (
	"net/http"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// MarkLongLived marks a call as long-lived, see [core.Guard.MarkLongLived], if its connection was
// taken over, as for a WebSocket, or if the header of its response says that it is a stream of
// events. It is for adapters.
func MarkLongLived(guard *core.Guard, header http.Header, takenOver bool) {
	if takenOver || IsEventStream(header.Get("Content-Type")) {
		guard.MarkLongLived()
	}
}

// IsEventStream says whether a Content-Type is that of server-sent events.
func IsEventStream(contentType string) bool {
	const events = "text/event-stream"
	if len(contentType) < len(events) || !strings.EqualFold(contentType[:len(events)], events) {
		return false
	}
	rest := strings.TrimLeft(contentType[len(events):], " \t")
	return rest == "" || rest[0] == ';'
}
