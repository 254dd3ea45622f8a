package console

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// maxStreams is how many pages may be open at a time, and maxStreamsOfOne how many of somebody who is known.
	maxStreams      = 128
	maxStreamsOfOne = 64

	// maxQuery is how many bytes may say what a page shows.
	maxQuery = 8 << 10

	// tick is how often what is shown is read, as long as somebody looks.
	tick = time.Second

	// tickDelay is how long after the end of a second that is: the calls that ended in it are counted.
	tickDelay = 30 * time.Millisecond

	heartbeat     = 10 * time.Second // a stream is silent no longer
	streamTimeout = 5 * time.Second  // for a write: a client that reads more slowly is dropped
)

// screen reads what a screen shows. It is called once a second, and never concurrently; what it keeps
// between calls is in the values that it holds.
type screen interface {
	read(ctx context.Context) (any, error)
}

// topics are the screens that somebody looks at. Those who look at the same share one.
type topics struct {
	mu      sync.Mutex // guards what follows
	open    map[string]*topic
	streams int
	of      map[Identity]int               // of streams, those of somebody who is known
	servers map[*http.Server]chan struct{} // closed when the server is shut down
}

func newTopics() *topics {
	return &topics{open: make(map[string]*topic), of: make(map[Identity]int), servers: make(map[*http.Server]chan struct{})}
}

// topic is a screen that somebody looks at.
type topic struct {
	watchers int // guarded by topics
	cancel   context.CancelFunc

	mu      sync.Mutex // guards what follows
	latest  []byte     // as streams tell it, the same bytes for all; nil before the first reading
	changed chan struct{}
}

// present returns what the screen shows, and a channel that is closed when that changes.
func (t *topic) present() ([]byte, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest, t.changed
}

// run reads the screen until nobody looks any longer.
func (t *topic) run(ctx context.Context, s screen) {
	seed, shown := maphash.MakeSeed(), uint64(0)
	for {
		data, err := s.read(ctx)
		if ctx.Err() != nil {
			return
		}
		text, failed := json.Marshal(shownScreen{data, textOf(err)})
		if failed != nil { // numbers that are not finite, though those of instances are
			text, _ = json.Marshal(shownScreen{Error: failed.Error()})
		}
		if sum := maphash.Bytes(seed, text); sum != shown {
			shown = sum
			event := slices.Concat([]byte("event: screen\ndata: "), text, []byte("\n\n"))
			t.mu.Lock()
			t.latest = event
			close(t.changed)
			t.changed = make(chan struct{})
			t.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(untilNextTick(time.Now())):
		}
	}
}

// shownScreen is what the page gets of a screen.
type shownScreen struct {
	Data  any    `json:"data"`
	Error string `json:"error,omitempty"`
}

func untilNextTick(now time.Time) time.Duration {
	return tick - time.Duration(now.Add(-tickDelay).UnixNano()%int64(tick))
}

// enter counts a stream, and returns the topic that it follows. The channel is closed when its server is
// shut down, which would wait for the stream otherwise.
func (t *topics) enter(r *http.Request, who Identity, key string, open func() (screen, error)) (*topic, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server != nil && t.servers[server] == nil {
		closing := make(chan struct{})
		t.servers[server] = closing
		server.RegisterOnShutdown(func() { close(closing) })
	}
	if t.streams >= maxStreams || t.of[who] >= maxStreamsOfOne {
		return nil, nil, errTooMany
	}
	found := t.open[key]
	if found == nil {
		s, err := open()
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		found = &topic{cancel: cancel, changed: make(chan struct{})}
		t.open[key] = found
		go found.run(ctx, s)
	}
	t.streams++
	if who != "" {
		t.of[who]++
	}
	found.watchers++
	return found, t.servers[server], nil
}

var errTooMany = errors.New("console: too many pages are open: close some")

func (t *topics) leave(who Identity, key string, of *topic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams--
	if t.of[who]--; t.of[who] <= 0 {
		delete(t.of, who)
	}
	if of.watchers--; of.watchers == 0 {
		of.cancel()
		delete(t.open, key)
	}
}

// live streams what a screen shows, as server-sent events.
func (h *handler) live(w http.ResponseWriter, r *http.Request, who Identity) {
	if len(r.URL.RawQuery) > maxQuery {
		fail(w, http.StatusRequestURITooLong, "names are too long")
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest, "the query cannot be read")
		return
	}
	key := query.Encode()
	of, ended, err := h.topics.enter(r, who, key, func() (screen, error) { return h.open(query) })
	switch {
	case errors.Is(err, errTooMany):
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	defer h.topics.leave(who, key, of)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that keeps answers back until they are long
	s := stream{out: w, control: http.NewResponseController(w)}
	s.run(r, of, ended)
}

// stream is a page that is open.
type stream struct {
	out     io.Writer
	control *http.ResponseController
}

func (s stream) run(r *http.Request, of *topic, ended <-chan struct{}) {
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }()
	err := s.write([]byte("retry: 1000\n\n"))
	silence := time.NewTicker(heartbeat)
	defer silence.Stop()
	var shown []byte
	for err == nil {
		latest, changed := of.present()
		if latest != nil && (shown == nil || &latest[0] != &shown[0]) {
			shown = latest
			err = s.write(latest)
			continue
		}
		select {
		case <-changed:
		case <-silence.C:
			err = s.write([]byte(": alive\n\n"))
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s stream) write(text []byte) error {
	err := s.control.SetWriteDeadline(time.Now().Add(streamTimeout))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
