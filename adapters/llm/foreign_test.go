package llm_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// foreign is code of the program that fails at one place, at the n-th time.
type foreign struct {
	place string
	left  int
	fail  func()
}

func (f *foreign) in(place string) {
	if place != f.place {
		return
	}
	if f.left--; f.left == 0 {
		f.fail()
	}
}

// Enabled and the other methods are those of a log.
func (f *foreign) Enabled(context.Context, slog.Level) bool  { return true }
func (f *foreign) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f *foreign) WithGroup(string) slog.Handler             { return f }
func (f *foreign) Handle(context.Context, slog.Record) error { f.in("log"); return nil }

// foreignBody is the body of an answer.
type foreignBody struct {
	*foreign
	io.Reader
}

func (b foreignBody) Read(p []byte) (int, error) { b.in("Read"); return b.Reader.Read(p) }
func (b foreignBody) Close() error               { b.in("Close"); return nil }

// RoundTrip is that of a provider, and ServeHTTP likewise.
func (f *foreign) RoundTrip(r *http.Request) (*http.Response, error) {
	f.in("base")
	if f.place == "nothing" {
		return nil, nil
	}
	w := httptest.NewRecorder()
	f.answer(w, r)
	response := w.Result()
	response.Body = foreignBody{f, response.Body}
	if f.place == "no body" {
		response.Body = nil
	}
	return response, nil
}

func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.in("base")
	f.answer(w, r)
}

func (f *foreign) answer(w http.ResponseWriter, r *http.Request) {
	answer := `{"choices":[{"index":0,"delta":{"content":"word word"}}]}`
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+answer+"\n\ndata: no JSON\n\ndata: "+answer) // cut off
		return
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(answer, "delta", "message"))
}

// foreignWriter is a ResponseWriter of the program.
type foreignWriter struct {
	*foreign
	http.ResponseWriter
}

func (w foreignWriter) Header() http.Header { w.in("Header"); return w.ResponseWriter.Header() }

func (w foreignWriter) Write(p []byte) (int, error) { w.in("Write"); return w.ResponseWriter.Write(p) }

// foreignMeter is a meter whose options fail.
func foreignMeter(t *testing.T, f *foreign) (*llm.Meter, *core.Engine) {
	t.Helper()
	engine := core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), Observer: core.Observer{Ended: func(core.End) { f.in("Ended of the engine") }},
	})
	t.Cleanup(engine.Close)
	set := rules.Set{}
	for _, resource := range []string{llm.TokensResource, llm.CostResource} {
		set.HotParam = append(set.HotParam, hotparam.Rule{Name: resource, Resource: resource, Param: rule.StringsOf("user"), Limit: 1e6})
		set.Isolation = append(set.Isolation, isolation.Rule{Name: resource, Resource: resource, Limit: 100})
	}
	require.NoError(t, engine.Load(set))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{})
	require.NoError(t, err)
	read := func(f *foreign, _ string) rule.Attribute { f.in("read"); return rule.String("u") }
	meter, err := llm.New(llm.Options{
		Engine: engine, Prices: map[string]llm.Price{"*": {Prompt: 1, Answer: 1}}, Logger: slog.New(f), Throttle: throttle, StopStreams: true,
		Attributes: func(*http.Request) []core.Option { return []core.Option{core.Attributes(read, f)} },
		Count:      func(_, text string) int { f.in("Count"); return len(text) },
		Target:     func(*http.Request, llm.Call) string { f.in("Target"); return "target" },
		Ended:      func(llm.Report) { f.in("Ended") },
	})
	require.NoError(t, err)
	return meter, engine
}

// Whatever fails on the way of a call, it holds nothing afterwards.
func TestCallThatFailsHoldsNothing(t *testing.T) {
	for way, fail := range map[string]func(){"panic": func() { panic("failed") }, "Goexit": runtime.Goexit} {
		for _, place := range []string{
			"base", "read", "Count", "Target", "Ended", "log", "Read", "Close", "Header", "Write", "Ended of the engine", "nothing", "no body",
		} {
			for n := 1; n <= 5; n++ {
				for _, stream := range []bool{false, true} {
					body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"word"}]}`, stream)
					t.Run(fmt.Sprintf("%s %d %s, stream %v", place, n, way, stream), func(t *testing.T) {
						f := &foreign{place, n, fail}
						testForeign(t, f, "client", func(meter *llm.Meter, r *http.Request) {
							response, err := meter.Transport(f).RoundTrip(r)
							if err != nil || response == nil {
								return
							}
							defer func() { _ = response.Body.Close() }()
							_, _ = io.Copy(io.Discard, response.Body)
						}, body)
						f = &foreign{place, n, fail}
						testForeign(t, f, "gateway", func(meter *llm.Meter, r *http.Request) {
							meter.Handler(f).ServeHTTP(foreignWriter{f, httptest.NewRecorder()}, r)
						}, body)
					})
				}
			}
		}
	}
}

func testForeign(t *testing.T, f *foreign, side string, call func(*llm.Meter, *http.Request), body string) {
	t.Helper()
	meter, engine := foreignMeter(t, f)
	request := httptest.NewRequest(http.MethodPost, "http://host/v1/chat/completions", strings.NewReader(body))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		call(meter, request.WithContext(context.Background())) // which never ends
	}()
	<-done
	for _, resource := range []string{llm.TokensResource, llm.CostResource} {
		of := engine.Resource(resource).Snapshot()
		assert.Zero(t, of.InFlight, "%s, %s", side, resource)
		for _, r := range of.Rules {
			if r.Kind == "isolation" {
				assert.Zero(t, r.Gauges[0], "%s, places of %s", side, resource)
			}
		}
	}
}

// A body that is neither read nor closed holds nothing once the context of its call has ended.
func TestAnswerThatIsForgottenHoldsNothingOnceItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &foreign{}
		meter, engine := foreignMeter(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		request := httptest.NewRequest(http.MethodPost, "http://host/v1/messages", strings.NewReader(`{"stream":true}`)).WithContext(ctx)
		response, err := meter.Transport(f).RoundTrip(request) //nolint:bodyclose // that is the test
		require.NoError(t, err)
		require.NotNil(t, response)
		assert.EqualValues(t, 2, engine.Resource(llm.TokensResource).Snapshot().InFlight)
		cancel()
		synctest.Wait()
		assert.Zero(t, engine.Resource(llm.TokensResource).Snapshot().InFlight)
		engine.Close()
	})
}

// A stream may come byte by byte, also one whose lines are long.
func TestStreamThatComesByteByByteIsReadOnce(t *testing.T) {
	f := &foreign{}
	meter, _ := foreignMeter(t, f)
	long := strings.Repeat("x", 1<<20-100)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range len(long) {
			_, err := io.WriteString(w, long[i:i+1])
			assert.NoError(t, err)
		}
		_, _ = io.WriteString(w, "\r\n\r\ndata: {}\n\n")
	})
	w := httptest.NewRecorder()
	meter.Handler(next).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{"stream":true}`)))
	assert.Equal(t, long+"\r\n\r\ndata: {}\n\n", w.Body.String())
}

// Of several answers the first may be over before the second has begun.
func TestCallOfSeveralAnswersIsOverWithTheLast(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"index\":%d,\"delta\":{\"content\":\"w\"},\"finish_reason\":%s}]}\n\n"
	for ended := 1; ended <= 3; ended++ {
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
		defer engine.Close()
		var last llm.Report
		meter, err := llm.New(llm.Options{Engine: engine, Ended: func(r llm.Report) { last = r }})
		require.NoError(t, err)
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range ended {
				_, _ = fmt.Fprintf(w, chunk, i, "null")
				_, _ = fmt.Fprintf(w, chunk, i, `"stop"`)
			}
		})
		for range 25 {
			body := strings.NewReader(`{"n":3,"stream":true,"messages":"m"}`)
			meter.Handler(next).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", body))
		}
		if ended < 3 {
			assert.Equal(t, 3*512, last.Estimated, "nothing was learnt of answers that were cut off")
		} else {
			assert.Less(t, last.Estimated, 20)
		}
	}
}
