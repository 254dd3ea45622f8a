package inspect_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
)

// shelf is a source that does what the test says.
type shelf struct {
	name  string
	steps chan func(core.Sink)
}

func (s shelf) Name() string { return s.name }

func (s shelf) Run(ctx context.Context, sink core.Sink) error {
	for {
		select {
		case step := <-s.steps:
			step(sink)
			s.steps <- nil // done
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s shelf) do(step func(core.Sink)) {
	s.steps <- step
	<-s.steps
}

func TestReadyTellsWhatIsMissingAndWhatIsACopy(t *testing.T) {
	engine, server := newEngine(t)
	requireReadiness := func(code int, want inspect.Readiness) {
		t.Helper()
		var got inspect.Readiness
		require.Equal(t, code, ask(t, server, http.MethodGet, "/debug/penstock/ready", &got))
		require.Equal(t, want, got)
	}
	requireReadiness(http.StatusOK, inspect.Readiness{Ready: true})

	a, b := shelf{"a", make(chan func(core.Sink))}, shelf{"b", make(chan func(core.Sink))}
	require.NoError(t, engine.Follow(t.Context(), a))
	require.NoError(t, engine.Follow(t.Context(), b))
	requireReadiness(http.StatusServiceUnavailable, inspect.Readiness{Missing: []inspect.MissingSource{{Source: "a"}, {Source: "b"}}})

	fell := func(sink core.Sink) { sink.Disconnected(errors.New("it fell")) }
	a.do(fell)
	b.do(func(sink core.Sink) { sink.Apply(core.Change{Complete: true}) })
	requireReadiness(http.StatusServiceUnavailable, inspect.Readiness{Missing: []inspect.MissingSource{{Source: "a", Error: "it fell"}}})

	noon := engine.Clock().Now()
	a.do(func(sink core.Sink) { sink.Apply(core.Change{Complete: true, CopiedAt: noon.Add(-time.Hour)}) })
	b.do(fell)
	requireReadiness(http.StatusOK, inspect.Readiness{Ready: true, OnCopy: []inspect.SourceOnCopy{
		{Source: "a", CopiedAt: noon.Add(-time.Hour).Time(), Error: "it fell"},
	}})
	var status inspect.Status
	ask(t, server, http.MethodGet, "/status", &status)
	assert.Equal(t, noon.Add(-time.Hour).Time(), status.Sources[0].CopiedAt)
	assert.Equal(t, noon.Add(-time.Hour).Time(), status.Sources[0].KnownUntil)
	assert.Zero(t, status.Sources[1].CopiedAt)

	a.do(func(sink core.Sink) { sink.Apply(core.Change{Complete: true}) })
	requireReadiness(http.StatusOK, inspect.Readiness{Ready: true})
}
