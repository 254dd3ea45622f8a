package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

func TestEventsAreShownSinceOneOfThem(t *testing.T) {
	engine, server := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{
		Flow:    []flow.Rule{{Name: "none", Resource: "<none>"}},
		Breaker: []breaker.Rule{{Name: "b", Resource: "r", Threshold: 0.5}},
	}))
	makeCalls(t, engine, "<none>", 2, 0)
	require.NoError(t, engine.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Open))
	var all, rest inspect.Events
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/events", &all))
	require.Len(t, all.Events, 4)
	at, id := engine.Clock().Now().Time(), all.Events[0].ID
	assert.Equal(t, []inspect.Event{
		{ID: id, At: at, Type: "swap", Source: "code", Revision: 1, Swap: &inspect.EventSwap{Rules: 2, Added: 2}},
		{ID: id + 1, At: at, Type: "refusal", Resource: "<none>", Kind: rules.KindFlow, Rule: "none", CannotPass: true},
		{ID: id + 2, At: at, Type: "forced", Kind: rules.KindBreaker, To: breaker.Open},
		{ID: id + 3, At: at, Type: "state", Resource: "r", Kind: rules.KindBreaker, Rule: "b", From: breaker.Closed, To: breaker.Open, Forced: breaker.Open, Text: "forced to be open"},
	}, all.Events)
	assert.Equal(t, id+3, all.Last)
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, fmt.Sprint("/events?since=", id+1), &rest))
	assert.Equal(t, all.Events[2:], rest.Events)
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, fmt.Sprint("/events?since=", id+3), &rest))
	assert.Empty(t, rest.Events)
	assert.Equal(t, id+3, rest.Last)
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/events?since=7", &rest))
	assert.True(t, rest.Missed, "they are those of another process")
	for target, message := range map[string]string{
		"/events?since=-1": `since is "-1": it is the id of an event`, "/events?after=1": "the parameter is since",
		"/stream?top=1001": "a number from 0 to 1000", "/stream?since=x": "since is", "/stream?sort=x": "sort is", "/stream?match=[": "match",
	} {
		var failure inspect.Failure
		assert.Equal(t, http.StatusBadRequest, ask(t, server, http.MethodGet, target, &failure), target)
		assert.Contains(t, failure.Error, message)
	}
}

// subscriber reads a stream.
type subscriber struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

func subscribe(t *testing.T, server *httptest.Server, target string, header ...string) *subscriber {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+target, http.NoBody)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	client := server.Client()
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	s := &subscriber{t, bufio.NewScanner(response.Body), cancel}
	s.lines.Buffer(nil, 1<<24)
	return s
}

// next returns the type of the next message, its ID and its data; "" for the type of a comment, and
// "end" at the end.
func (s *subscriber) next() (kind, id, data string) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if s.lines.Text() == "" {
				return kind, id, data
			}
			data = value
		}
	}
	return "end", "", ""
}

func (s *subscriber) page() (page inspect.StreamPage) {
	s.t.Helper()
	kind, _, data := s.next()
	for kind == "event" {
		kind, _, data = s.next()
	}
	require.Equal(s.t, "resources", kind, data)
	require.NoError(s.t, json.Unmarshal([]byte(data), &page))
	return page
}

func (s *subscriber) event() (of inspect.Event) {
	s.t.Helper()
	kind, id, data := s.next()
	require.Equal(s.t, "event", kind, data)
	require.NoError(s.t, json.Unmarshal([]byte(data), &of))
	require.Equal(s.t, fmt.Sprint(of.ID), id)
	return of
}

func TestStreamTellsWhatChangesOnceASecond(t *testing.T) {
	engine, server := newEngine(t, flow.Rule{Match: "*", Limit: 2})
	makeCalls(t, engine, "a", 5, 0)
	makeCalls(t, engine, "b", 1, 0)
	makeCalls(t, engine, "c", 1, 0)
	s := subscribe(t, server, "/stream?top=2")
	_, _, data := s.next()
	require.Equal(t, "penstock", data)
	first := s.page()
	assert.Equal(t, []string{"a", "b"}, first.Names)
	assert.Equal(t, 3, first.Total)
	require.Len(t, first.Resources, 2)
	assert.Equal(t, uint64(3), first.Resources[0].Minute.Refused)

	settle(engine)
	advance(engine, 1020*time.Millisecond)
	second := s.page()
	assert.Len(t, second.Resources, 2, "their last second is another one")
	assert.Equal(t, uint64(3), second.Resources[0].Second.Refused)
	assert.Nil(t, second.Names, "as before")

	makeCalls(t, engine, "b", 5, 0)
	settle(engine)
	advance(engine, time.Second)
	third := s.page()
	assert.Equal(t, []string{"b", "a"}, third.Names)
	require.Len(t, third.Resources, 2)
	assert.Equal(t, uint64(3), third.Resources[0].Second.Refused)

	settle(engine)
	advance(engine, time.Second)
	assert.Equal(t, "b", s.page().Resources[0].Name, "what has not changed is not told again")
}

// settle waits until the streams of an engine wait for its clock.
func settle(engine *core.Engine) {
	c := engine.Clock().(*clock.Virtual)
	for c.Timers() == 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestStreamTellsEventsAtOnce(t *testing.T) {
	engine, server := newEngine(t, flow.Rule{Resource: "r", Limit: 2})
	s := subscribe(t, server, "/stream?top=0")
	s.next()
	load := func(limit float64) {
		require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: limit}}}))
	}
	load(3)
	first := s.event()
	assert.EqualValues(t, "swap", first.Type)
	assert.Equal(t, &inspect.EventSwap{Rules: 1, Changed: 1}, first.Swap)
	s.cancel()

	load(4)
	load(5)
	for _, again := range []*subscriber{
		subscribe(t, server, "/stream?top=0", "Last-Event-ID", fmt.Sprint(first.ID)),
		subscribe(t, server, fmt.Sprint("/stream?top=0&since=", first.ID)),
	} {
		again.next()
		assert.Equal(t, first.ID+1, again.event().ID)
		assert.Equal(t, first.ID+2, again.event().ID)
	}
	other := subscribe(t, server, "/stream?top=0&since=7")
	other.next()
	kind, _, _ := other.next()
	assert.Equal(t, "missed", kind)
	assert.Less(t, other.event().ID, first.ID)
}

func TestStreamsEndWithTheEngineAndTheServer(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: inspect.Handler(engine, inspect.Options{}), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client := &httptest.Server{URL: "http://" + listener.Addr().String()}
	s := subscribe(t, client, "/stream?top=0")
	s.next()
	require.NoError(t, server.Shutdown(t.Context()), "it does not wait for the streams")
	kind, _, _ := s.next()
	assert.Equal(t, "end", kind)
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	http.DefaultClient.CloseIdleConnections()
}

func TestStreamEndsWithTheEngine(t *testing.T) {
	engine, server := newEngine(t)
	s := subscribe(t, server, "/stream")
	s.next()
	s.next()
	settle(engine)
	engine.Close()
	advance(engine, 2*time.Second)
	kind, _, _ := s.next()
	assert.Equal(t, "end", kind)
}

func TestStreamIsNeverSilentForLong(t *testing.T) {
	engine, server := newEngine(t)
	s := subscribe(t, server, "/stream?top=0")
	s.next()
	for range 10 {
		settle(engine)
		advance(engine, time.Second)
	}
	settle(engine)
	advance(engine, time.Second)
	_, _, data := s.next()
	assert.Equal(t, "alive", data)
}

func TestStreamsAreOfLimitedNumber(t *testing.T) {
	_, server := newEngine(t)
	var all []*subscriber
	for range inspect.MaxStreams {
		all = append(all, subscribe(t, server, "/stream"))
	}
	var failure inspect.Failure
	assert.Equal(t, http.StatusServiceUnavailable, ask(t, server, http.MethodGet, "/stream", &failure))
	assert.Contains(t, failure.Error, "64 streams")
	all[0].cancel()
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/stream", http.NoBody)
		if !assert.NoError(t, err) {
			return false
		}
		response, err := server.Client().Do(request)
		if !assert.NoError(t, err) {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, 2*time.Minute, time.Millisecond)
}

// stuck is a client that reads nothing: a write to it fails once its deadline is over.
type stuck struct {
	http.ResponseWriter
	deadlines chan time.Time
}

func (s stuck) SetWriteDeadline(at time.Time) error {
	s.deadlines <- at
	return nil
}

func (stuck) Write([]byte) (int, error) { return 0, context.DeadlineExceeded }
func (stuck) Flush()                    {}

func TestStreamOfAClientThatDoesNotReadEnds(t *testing.T) {
	engine, _ := newEngine(t)
	s := stuck{httptest.NewRecorder(), make(chan time.Time, 10)}
	inspect.Handler(engine, inspect.Options{}).ServeHTTP(s, httptest.NewRequest(http.MethodGet, "/stream", http.NoBody))
	assert.WithinDuration(t, time.Now().Add(5*time.Second), <-s.deadlines, time.Minute)
}

func TestHandlerAnswersOnlyItsHosts(t *testing.T) {
	engine, _ := newEngine(t)
	for host, code := range map[string]int{
		"127.0.0.1:6060": 200, "[::1]:6060": 200, "localhost": 200, "OPS.internal.:80": 200, "evil.example": 403, "": 403,
	} {
		request := httptest.NewRequest(http.MethodGet, "/events", http.NoBody)
		request.Host = host
		answer := httptest.NewRecorder()
		inspect.Handler(engine, inspect.Options{Hosts: []string{"ops.internal"}}).ServeHTTP(answer, request)
		assert.Equal(t, code, answer.Code, host)
		answer = httptest.NewRecorder()
		inspect.Handler(engine, inspect.Options{}).ServeHTTP(answer, request)
		assert.Equal(t, http.StatusOK, answer.Code, "without the option any host will do")
	}
}
