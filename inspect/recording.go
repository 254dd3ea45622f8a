package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/recording"
)

const (
	// MaxRecording is how long a handler records at the most.
	MaxRecording = 10 * time.Minute

	// maxRecorders is how many recordings a handler makes at a time.
	maxRecorders = 4

	// recordingTimeout is how long a client may take to read a recording, once it is made.
	recordingTimeout = time.Minute
)

// recordings is what a handler that gives recordings has.
type recordings struct {
	name  string
	slots chan struct{}
}

func newRecordings(name string) *recordings {
	return &recordings{name: name, slots: make(chan struct{}, maxRecorders)}
}

// parseRecording reads a request for a recording.
func parseRecording(query string) (d time.Duration, past bool, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0, false, fmt.Errorf("inspect: %w", err)
	}
	if err := checkParameters(values, "for", "last"); err != nil {
		return 0, false, err
	}
	text, name := values.Get("for"), "for"
	if past = values.Has("last"); past {
		text, name = values.Get("last"), "last"
	}
	if values.Has("for") == past {
		return 0, false, errors.New("inspect: say either for=60s, to record the calls to come, or last=60s, for those that were recorded")
	}
	d, err = time.ParseDuration(text)
	if err != nil || d <= 0 || d > MaxRecording {
		return 0, false, fmt.Errorf("inspect: %s is %.60q: must be a time of at most %v, such as 60s", name, text, MaxRecording)
	}
	return d, past, nil
}

// recording answers with recorded calls.
func (h handler) recording(w http.ResponseWriter, r *http.Request) {
	if h.recordings == nil {
		answer(w, http.StatusForbidden, Failure{"inspect: this handler gives no recordings of calls: " +
			"they have names of callers and users, so the program has to allow it with inspect.Options.Recordings"})
		return
	}
	d, past, err := parseRecording(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	select {
	case h.recordings.slots <- struct{}{}:
		defer func() { <-h.recordings.slots }()
	default:
		w.Header().Set("Retry-After", "5")
		answer(w, http.StatusServiceUnavailable, Failure{fmt.Sprintf("inspect: %d recordings are made already", maxRecorders)})
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(d + recordingTimeout)) // the server may allow less; not all writers can
	of, err := h.record(r.Context(), d, past)
	switch {
	case errors.Is(err, core.ErrNotRecording):
		answer(w, http.StatusConflict, Failure{"inspect: the engine has recorded nothing: set core.Config.Recorder, or ask for the calls to come with for=60s"})
		return
	case err != nil:
		answer(w, http.StatusServiceUnavailable, Failure{"inspect: " + err.Error()})
		return
	}
	_ = control.SetWriteDeadline(time.Now().Add(recordingTimeout))
	of.Instances[0].Name = h.recordings.name
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	_ = recording.Write(w, of) // the client may be gone; it notices that the file is cut off
}

func (h handler) record(ctx context.Context, d time.Duration, past bool) (*recording.Recording, error) {
	if past {
		return h.engine.Recorded(d)
	}
	return h.engine.Record(ctx, d)
}
