package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// maxStreams is how many streams a handler serves at a time. Further ones are answered with 503.
	maxStreams = 64

	// streamDelay is how long after the end of a second a stream tells of it: calls that ended in it are
	// counted by then.
	streamDelay = 20 * time.Millisecond

	// heartbeatInterval is how long a stream is silent at the most.
	heartbeatInterval = 10 * time.Second

	// streamTimeout is how long a write to a client may take. The stream of one that reads more slowly
	// ends.
	streamTimeout = 5 * time.Second
)

// StreamPage is what a stream tells once a second, as an event "resources": the first resources in an
// order that have changed. The other events of a stream are "event", with an [Event] whose ID is that of
// the server-sent event, and "missed", which says that events were lost before the next one.
//
// The parameters match and sort are those of a [ResourceQuery], and top is its limit; 0 leaves resources
// out. The stream begins with the next event, or with those after the one that the parameter since or
// the field Last-Event-ID names. It ends when the engine or the server is closed or shut down, and when
// the client does not read.
type StreamPage struct {
	Time time.Time `json:"time"`

	// Resources are those of the page whose numbers are not those that the stream has told last.
	Resources []Resource `json:"resources"`

	// Names are the resources of the page in order; nil if they are as the stream has told last.
	Names []string `json:"names,omitempty"`

	Total int `json:"total"` // resources that the query selects
}

// streamRequest is what a stream is to tell.
type streamRequest struct {
	filter resourceFilter
	top    int
	since  uint64 // the last event that the client knows
}

// parseStream reads a request for a stream. last is the latest event.
func parseStream(r *http.Request, last uint64) (s streamRequest, err error) {
	s.since = last
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return s, fmt.Errorf("inspect: %w", err)
	}
	if err := checkParameters(values, "top", "match", "sort", "since"); err != nil {
		return s, err
	}
	if s.top, err = numberIn(values, "top", defaultResources, 0, maxResources); err != nil {
		return s, err
	}
	s.filter.Match, s.filter.Sort, s.filter.Limit = values.Get("match"), ResourceSort(values.Get("sort")), s.top
	if err := s.filter.complete(); err != nil {
		return s, err
	}
	if values.Has("since") {
		if s.since, err = parseEventID(values.Get("since")); err != nil {
			return s, err
		}
	}
	if id, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil { // a browser connects again
		s.since = id
	}
	return s, nil
}

// stream answers with what happens, as it happens.
func (h handler) stream(w http.ResponseWriter, r *http.Request) {
	last, _ := h.engine.LastEvent()
	request, err := parseStream(r, last)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	ended, ok := h.streams.begin(r)
	if !ok {
		w.Header().Set("Retry-After", "5")
		answer(w, http.StatusServiceUnavailable, Failure{fmt.Sprintf("inspect: there are %d streams already, or the server shuts down", maxStreams)})
		return
	}
	defer h.streams.end()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no") // a proxy that keeps answers back until they are long
	if r.Method == http.MethodHead {
		return
	}
	c := streamClient{h: h, request: request, out: w, control: http.NewResponseController(w), sent: make(map[string]uint64)}
	c.run(r, ended)
}

// streamClient is one stream. It has no buffer but that of the connection: a client that does not read
// ends it.
type streamClient struct {
	h       handler
	request streamRequest
	out     io.Writer
	control *http.ResponseController

	wroteAt clock.Instant
	sent    map[string]uint64 // what was told of each resource of the page, as a hash
	names   []string          // of the page, as told; nil before the first page
	err     error             // the first error of a write: the client is gone, or does not read
}

func (c *streamClient) run(r *http.Request, ended <-chan struct{}) {
	defer func() { _ = c.control.SetWriteDeadline(time.Time{}) }()
	engine := c.h.engine
	c.wroteAt = engine.Clock().Now()
	c.write(": penstock\nretry: 1000\n\n")
	timer := engine.Clock().NewTimer(0) // the first page comes at once
	defer timer.Stop()
	for c.err == nil && engine.Revision() != math.MaxUint64 { // not closed
		_, changed := engine.LastEvent()
		c.writeEvents()
		c.flush()
		select {
		case <-changed:
		case <-timer.C():
			c.writePage()
			c.writeHeartbeat()
			timer.Reset(nextTick(engine.Clock().Now()))
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// nextTick returns how long it takes until a stream tells of the next second.
func nextTick(now clock.Instant) time.Duration {
	since := time.Duration((int64(now) - int64(streamDelay)) % int64(time.Second))
	return time.Second - since
}

// write writes to the client, which has a limited time for it.
func (c *streamClient) write(parts ...string) {
	if c.err != nil {
		return
	}
	if err := c.control.SetWriteDeadline(time.Now().Add(streamTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.err = err
		return
	}
	_, c.err = io.WriteString(c.out, strings.Join(parts, ""))
	c.wroteAt = c.h.engine.Clock().Now()
}

func (c *streamClient) flush() {
	if err := c.control.Flush(); c.err == nil {
		c.err = err
	}
}

// writeEvents writes the events that the client does not know.
func (c *streamClient) writeEvents() {
	events, missed := c.h.engine.Events(c.request.since)
	if missed {
		c.write("event: missed\ndata: {}\n\n")
	}
	for i := range events {
		text, _ := json.Marshal(eventOf(&events[i], c.h.engine)) // never fails: it is texts and numbers
		c.write("id: ", strconv.FormatUint(events[i].ID, 10), "\nevent: event\ndata: ", string(text), "\n\n")
		c.request.since = events[i].ID
	}
}

// writePage writes the resources of the page that have changed.
func (c *streamClient) writePage() {
	if c.request.top == 0 {
		return
	}
	page := c.h.streams.page(c.h, &c.request.filter)
	told := struct {
		StreamPage
		Changed []json.RawMessage `json:"resources"` // in place of those of the page
	}{StreamPage: StreamPage{Time: page.at, Total: page.total}, Changed: []json.RawMessage{}}
	sent := make(map[string]uint64, len(page.resources))
	names := make([]string, 0, len(page.resources))
	for _, of := range page.resources {
		if before, told := c.sent[of.name]; !told || before != of.hash {
			c.sent[of.name] = of.hash
		} else {
			of.encoded = nil
		}
		sent[of.name] = of.hash
		names = append(names, of.name)
		if of.encoded != nil {
			told.Changed = append(told.Changed, of.encoded)
		}
	}
	c.sent = sent
	if c.names == nil || !slices.Equal(names, c.names) {
		c.names, told.Names = names, names
	}
	if len(told.Changed) == 0 && told.Names == nil {
		return
	}
	text, _ := json.Marshal(told)
	c.write("event: resources\ndata: ", string(text), "\n\n")
}

// writeHeartbeat writes a comment if nothing was written for long, so that both sides notice when the
// other one is gone.
func (c *streamClient) writeHeartbeat() {
	if c.h.engine.Clock().Now().Sub(c.wroteAt) >= heartbeatInterval {
		c.write(": alive\n\n")
	}
}
