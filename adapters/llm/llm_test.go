package llm_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/adapters/llm/llmtest"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// each runs a test for all styles at both sides.
func each(t *testing.T, test func(t *testing.T, side string, s style)) {
	t.Helper()
	for _, side := range sides() {
		for _, s := range styles() {
			t.Run(side+", "+s.String(), func(t *testing.T) { test(t, side, s) })
		}
	}
}

// unguarded returns what a provider answers without a meter.
func unguarded(t *testing.T, p http.Handler, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w.Body.String()
}

func answers(tokens int) func(llmtest.Request) int {
	return func(llmtest.Request) int { return tokens }
}

func TestCallCostsWhatTheProviderReportsAndItsAnswerIsUnchanged(t *testing.T) {
	each(t, func(t *testing.T, side string, s style) {
		for _, mute := range []bool{false, true} {
			p := &llmtest.Provider{Answer: answers(33), Chunk: 3, Mute: mute}
			g := newGateway(t, side, 100_000, llm.Options{}, p)
			status, answer, err := g.call(s.path, s.body(50, 0))
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, status)
			assert.Equal(t, unguarded(t, p, s.path, s.body(50, 0)), answer)
			r := g.report()
			want := 33
			if s.name == "embeddings" {
				want = 0
			}
			assert.Equal(t, llm.Call{Style: s.name, Model: "m-1", Key: r.Key}, r.Call)
			assert.Empty(t, r.Unread)
			assert.Equal(t, !mute, r.Reported)
			assert.Equal(t, 50, r.Prompt)
			assert.InDelta(t, want, r.Answer, 1, "without a report it is counted")
			assert.Equal(t, r.Prompt+r.Answer, g.used())
			assert.NotContains(t, r.Key, secret)
			assert.Empty(t, g.log.text())
		}
	})
}

func TestWhatIsHeldForAnAnswerIsAtMostWhatTheRequestAllows(t *testing.T) {
	each(t, func(t *testing.T, side string, s style) {
		if s.name == "embeddings" {
			t.Skip("there is no answer")
		}
		var held atomic.Int64
		var g *gateway
		g = newGateway(t, side, 100_000, llm.Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			held.Store(int64(g.used()))
			(&llmtest.Provider{}).ServeHTTP(w, r)
		}))
		_, _, err := g.call(s.path, s.body(10, 77))
		require.NoError(t, err)
		assert.EqualValues(t, 10+77, held.Load())
		assert.Equal(t, 77, g.report().Estimated)
		_, _, err = g.call(s.path, s.body(10, 0))
		require.NoError(t, err)
		assert.Equal(t, 512, g.report().Estimated, "the default while nothing is known")
		for range 20 {
			_, _, err = g.call(s.path, s.body(10, 0))
			require.NoError(t, err)
			g.report()
		}
		_, _, err = g.call(s.path, s.body(10, 0))
		require.NoError(t, err)
		assert.InDelta(t, 20, g.report().Estimated, 4, "it is learnt: answers have 20 tokens")
	})
}

func TestStreamStopsWithAWellFormedEnd(t *testing.T) {
	each(t, func(t *testing.T, side string, s style) {
		if !s.stream {
			t.Skip("it is no stream")
		}
		served := new(atomic.Int64)
		p := &llmtest.Provider{Answer: answers(100_000), Served: func(n int) { served.Add(int64(n)) }}
		g := newGateway(t, side, 100, llm.Options{StopStreams: true, FirstAnswer: 30}, p)
		status, answer, err := g.call(s.path, s.body(10, 0))
		require.NoError(t, err, "the end of the stream")
		assert.Equal(t, http.StatusOK, status)
		r := g.report()
		assert.True(t, r.Stopped)
		assert.Equal(t, 90, r.Answer, "the last token that the limit lets pass is the last one")
		assert.Less(t, served.Load(), int64(100_000), "the provider need not go on")
		events := strings.Split(strings.TrimSuffix(answer, "\n\n"), "\n\n")
		last := func(n int) (name string, data map[string]any) {
			event := events[len(events)-n]
			before, text, ok := strings.Cut(event, "data: ")
			require.True(t, ok, event)
			require.NoError(t, json.Unmarshal([]byte(text), &data), event)
			return strings.TrimSuffix(strings.TrimPrefix(before, "event: "), "\n"), data
		}
		switch s.name {
		case "chat":
			assert.Equal(t, "data: [DONE]", events[len(events)-1])
			_, data := last(2)
			assert.Equal(t, "chatcmpl-1", data["id"])
			assert.Equal(t, "chat.completion.chunk", data["object"])
			assert.Equal(t, []any{map[string]any{"index": 0.0, "delta": map[string]any{}, "finish_reason": "length"}}, data["choices"])
		case "messages":
			name, data := last(3)
			assert.Equal(t, "content_block_stop", name)
			assert.EqualValues(t, 0, data["index"])
			name, data = last(2)
			assert.Equal(t, "message_delta", name)
			assert.Equal(t, "max_tokens", data["delta"].(map[string]any)["stop_reason"])
			name, _ = last(1)
			assert.Equal(t, "message_stop", name)
		case "responses":
			name, data := last(1)
			assert.Equal(t, "response.incomplete", name)
			response := data["response"].(map[string]any)
			assert.Equal(t, "incomplete", response["status"])
			assert.Equal(t, "resp_1", response["id"])
			assert.Equal(t, map[string]any{"reason": "max_output_tokens"}, response["incomplete_details"])
		}
	})
}

func TestStreamGoesOnIntoDebtUnlessItIsToStop(t *testing.T) {
	for _, side := range sides() {
		p := &llmtest.Provider{Answer: answers(300)}
		g := newGateway(t, side, 100, llm.Options{FirstAnswer: 30}, p)
		s := style{"/v1/messages", "messages", true}
		_, answer, err := g.call(s.path, s.body(10, 0))
		require.NoError(t, err)
		assert.Equal(t, unguarded(t, p, s.path, s.body(10, 0)), answer)
		r := g.report()
		assert.False(t, r.Stopped)
		assert.Equal(t, 300, r.Answer)
	}
}

func TestRefusedCallIsNotSent(t *testing.T) {
	each(t, func(t *testing.T, side string, s style) {
		var calls atomic.Int64
		g := newGateway(t, side, 100, llm.Options{FirstAnswer: 50}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
		for _, body := range []string{s.body(101, 0), s.body(60, 0)} { // the prompt is too much; with the answer it is
			if s.name == "embeddings" {
				body = s.body(101, 0)
			}
			response, err := g.send(s.path, body)
			if side == "client" {
				require.ErrorIs(t, err, core.ErrBlocked)
			} else {
				require.NoError(t, err)
				assert.Equal(t, http.StatusTooManyRequests, response.StatusCode)
				var data struct {
					Type  string
					Error struct{ Type, Message string }
				}
				require.NoError(t, json.NewDecoder(response.Body).Decode(&data))
				require.NoError(t, response.Body.Close())
				assert.Equal(t, "rate_limit_error", data.Error.Type)
				assert.Equal(t, s.name == "messages", data.Type == "error")
			}
			assert.Zero(t, g.used(), "nothing is taken")
		}
		assert.Zero(t, calls.Load())
	})
}

func TestCallThatTheProviderDoesNotServeCostsNothing(t *testing.T) {
	each(t, func(t *testing.T, side string, s style) {
		g := newGateway(t, side, 1000, llm.Options{}, &llmtest.Provider{Status: func(llmtest.Request) int { return http.StatusTooManyRequests }})
		status, answer, err := g.call(s.path, s.body(50, 100))
		require.NoError(t, err)
		assert.Equal(t, http.StatusTooManyRequests, status)
		assert.Contains(t, answer, "not now")
		g.report()
		assert.Zero(t, g.used())
	})
}

func TestWhatCannotBeReadIsPassedOnAndSaid(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if kind := r.Header.Get("Answer-Type"); kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		if encoding := r.Header.Get("Answer-Encoding"); encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		_, _ = w.Write(body)
	})
	long := strings.Repeat("a", 5000)
	for _, side := range sides() {
		for name, test := range map[string]struct {
			body, unread string
			header       []string
		}{
			"no JSON":            {"hello", "the request is not JSON of a known shape", nil},
			"a list":             {"[1]", "the request is not JSON of a known shape", nil},
			"no body":            {"", "the request has no body", nil},
			"a long request":     {`{"model":"m","input":"` + long + `"}`, "the request is too long", nil},
			"a compressed one":   {"gzip", "the request is compressed", []string{"Content-Encoding", "gzip"}},
			"no prompt":          {`{"model":"m"}`, "the request has no prompt of a known shape", nil},
			"an unknown answer":  {`{"model":"m","input":"abc"}`, "the answer has no usage and no text of a known shape", nil},
			"a compressed one ":  {`{"model":"m","input":"abc"}`, "the answer is compressed", []string{"Answer-Encoding", "br"}},
			"broken events":      {"{\"input\":\"abc\"}\n", "", []string{"Answer-Type", "text/event-stream"}},
			"an event that ends": {`{"model":"m","input":"data: {"}`, "", []string{"Answer-Type", "text/event-stream"}},
		} {
			t.Run(side+", "+name, func(t *testing.T) {
				g := newGateway(t, side, 1e6, llm.Options{MaxRequest: 4000}, echo)
				_, answer, err := g.call("/v1/responses", test.body, append(test.header, "Accept-Encoding", "identity")...)
				require.NoError(t, err)
				assert.Equal(t, test.body, answer)
				r := g.report()
				assert.Equal(t, test.unread, r.Unread)
				assert.NotContains(t, g.log.text(), secret)
				if test.unread != "" {
					assert.Contains(t, g.log.text(), test.unread)
					assert.Positive(t, r.Answer, "it is charged by the estimate")
				}
				_, _, err = g.call("/v1/responses", test.body, append(test.header, "Accept-Encoding", "identity")...)
				require.NoError(t, err)
				g.report()
				if test.unread != "" {
					assert.Equal(t, 1, strings.Count(g.log.text(), test.unread), "it is said once")
				}
			})
		}
	}
}

func TestLongAnswersAndEventsArePassedOn(t *testing.T) {
	s := style{"/v1/chat/completions", "chat", false}
	for _, side := range sides() {
		for _, s.stream = range []bool{false, true} {
			p := &llmtest.Provider{Answer: answers(2000), Chunk: 2000}
			g := newGateway(t, side, 1e6, llm.Options{MaxResponse: 1000, MaxEvent: 1000}, p)
			_, answer, err := g.call(s.path, s.body(5, 0))
			require.NoError(t, err)
			assert.Equal(t, unguarded(t, p, s.path, s.body(5, 0)), answer)
			assert.Contains(t, g.report().Unread, "too long")
		}
	}
}

func TestUsageIsAskedForAndKeptFromTheClient(t *testing.T) {
	s := style{"/v1/chat/completions", "chat", true}
	body := strings.Replace(s.body(5, 0), `,"stream_options":{"include_usage":true}`, "", 1)
	for _, side := range sides() {
		p := &llmtest.Provider{Answer: answers(7)}
		g := newGateway(t, side, 1e6, llm.Options{AskForUsage: true}, p)
		_, answer, err := g.call(s.path, body)
		require.NoError(t, err)
		assert.Equal(t, unguarded(t, p, s.path, body), answer)
		r := g.report()
		assert.True(t, r.Reported)
		assert.Equal(t, 7, r.Answer)
	}
}

func TestRulesLookAtModelTenantKeyAndStyle(t *testing.T) {
	for _, side := range sides() {
		for _, key := range []string{"model", "tenant", "key", "style"} {
			g := newGateway(t, side, 1e6, llm.Options{
				FirstAnswer: 20, Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") },
			}, &llmtest.Provider{})
			g.load(rules.Set{HotParam: []hotparam.Rule{{
				Name: "each", Resource: llm.TokensResource, Param: rule.StringsOf(key), Limit: 100, Window: time.Minute, Missing: rule.MissingBlock,
				Algorithm: hotparam.SlidingWindow,
			}}})
			s := styles()[0]
			refused := func(s style, model, tenant, key string) bool {
				status, _, err := g.call(s.path, strings.Replace(s.body(60, 0), "m-1", model, 1), "Tenant", tenant, "Authorization", "Bearer "+key)
				if err == nil && status == http.StatusOK {
					g.report()
				}
				return err != nil || status == http.StatusTooManyRequests
			}
			assert.False(t, refused(s, "m-1", "ann", "k1"), key)
			assert.True(t, refused(s, "m-1", "ann", "k1"), key)
			assert.False(t, refused(styles()[2], "m-2", "bob", "k2"), key)
		}
	}
}

func TestMoneyIsLimited(t *testing.T) {
	for _, side := range sides() {
		g := newGateway(t, side, 1e6, llm.Options{
			FirstAnswer: 100,
			Prices:      map[string]llm.Price{"m-*": {Prompt: 2, Answer: 10}, "*": {Prompt: 1e6}},
		}, &llmtest.Provider{Answer: answers(50)})
		g.load(rules.Set{Flow: []flow.Rule{{Name: "budget", Resource: llm.CostResource, Limit: 1500, Window: time.Minute}}})
		s := styles()[1]
		_, _, err := g.call(s.path, s.body(100, 0)) // holds 200 + 1000
		require.NoError(t, err)
		assert.InDelta(t, 700e-6, g.report().Cost, 1e-9)
		status, _, err := g.call(s.path, s.body(100, 0)) // 800 are left
		assert.True(t, err != nil || status == http.StatusTooManyRequests)
		_, _, err = g.call(s.path, s.body(100, 50))
		require.NoError(t, err)
		g.report()
		assert.EqualValues(t, 100, g.engine.Resource(llm.CostResource).Snapshot().Rules[0].Quota.Remaining)
	}
}

func TestProviderThatWantsNoCallsGetsNone(t *testing.T) {
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{})
	require.NoError(t, err)
	var calls atomic.Int64
	p := &llmtest.Provider{
		Header: func(h http.Header) {
			calls.Add(1)
			h.Set("X-Ratelimit-Remaining-Tokens", "0")
			h.Set("X-Ratelimit-Reset-Tokens", "40s")
		},
	}
	g := newGateway(t, "client", 1e6, llm.Options{Throttle: throttle}, p)
	s := styles()[0]
	_, _, err = g.call(s.path, s.body(5, 0))
	require.NoError(t, err)
	g.report()
	used := g.used()
	_, _, err = g.call(s.path, s.body(5, 0))
	require.ErrorIs(t, err, outgoing.ErrPaused)
	g.report()
	assert.Equal(t, used, g.used(), "it costs nothing")
	_, _, err = g.call(s.path, s.body(5, 0), "Authorization", "Bearer another-key")
	require.NoError(t, err, "the provider limits each key")
	assert.EqualValues(t, 2, calls.Load())
}

func TestAnswersOfProviders(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status int
		header map[string]string
		want   outgoing.Answer
	}{
		"served":             {200, map[string]string{"X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "6m0s"}, outgoing.Answer{Result: outgoing.Accepted}},
		"requests used up":   {200, map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m2.5s"}, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 62500 * time.Millisecond}},
		"seconds":            {200, map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "2.5"}, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 2500 * time.Millisecond}},
		"an instant":         {200, map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "2026-11-27T12:00:09Z"}, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 9 * time.Second}},
		"since 1970":         {200, map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "1795780807"}, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 7 * time.Second}},
		"a past instant":     {200, map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "2026-11-27T11:00:00Z"}, outgoing.Answer{Result: outgoing.Accepted}},
		"no duration":        {200, map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "soon"}, outgoing.Answer{Result: outgoing.Accepted}},
		"retry after":        {429, map[string]string{"Retry-After": "7"}, outgoing.Answer{Result: outgoing.Rejected, RetryAfter: 7 * time.Second}},
		"milliseconds":       {429, map[string]string{"Retry-After-Ms": "1500"}, outgoing.Answer{Result: outgoing.Rejected, RetryAfter: 1500 * time.Millisecond}},
		"overloaded":         {529, map[string]string{"Retry-After": "3"}, outgoing.Answer{Result: outgoing.Rejected, RetryAfter: 3 * time.Second}},
		"overloaded, a date": {529, map[string]string{"Retry-After": "Fri, 27 Nov 2026 12:00:03 GMT"}, outgoing.Answer{Result: outgoing.Rejected, RetryAfter: 3 * time.Second}},
		"no retries":         {429, map[string]string{"X-Should-Retry": "false"}, outgoing.Answer{Result: outgoing.Rejected, NoRetry: true}},
		"anthropic":          {200, map[string]string{"Anthropic-Ratelimit-Output-Tokens-Remaining": "0", "Anthropic-Ratelimit-Output-Tokens-Reset": "2026-11-27T12:00:09Z"}, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 9 * time.Second}},
		"anthropic, its day": {200, map[string]string{"Date": "Fri, 27 Nov 2026 12:00:05 GMT", "Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": "2026-11-27T12:00:09Z"}, outgoing.Answer{Result: outgoing.Accepted, RetryAfter: 4 * time.Second}},
		"anthropic, left":    {200, map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "1000", "Anthropic-Ratelimit-Tokens-Reset": "2026-11-27T12:00:09Z"}, outgoing.Answer{Result: outgoing.Accepted}},
	} {
		header := http.Header{}
		for key, value := range test.header {
			header.Set(key, value)
		}
		assert.Equal(t, test.want, llm.Answer(&http.Response{StatusCode: test.status, Header: header}, nil, now), name)
	}
	assert.Equal(t, outgoing.Answer{Result: outgoing.Rejected}, llm.Answer(nil, errors.New("refused"), now))
}

func TestClientThatLeavesPaysForWhatItGot(t *testing.T) {
	for _, side := range sides() {
		held := make(chan struct{})
		g := newGateway(t, side, 1e6, llm.Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p := &llmtest.Provider{Answer: answers(3)}
			_, _ = io.WriteString(io.Discard, "")
			part := &partWriter{ResponseWriter: w, events: 3}
			p.ServeHTTP(part, r)
			<-held
		}))
		s := style{"/v1/chat/completions", "chat", true}
		response, err := g.send(s.path, s.body(10, 0))
		require.NoError(t, err)
		buffer := make([]byte, 4096)
		for read := 0; strings.Count(string(buffer[:read]), "\n\n") < 3; {
			n, err := response.Body.Read(buffer[read:])
			require.NoError(t, err)
			read += n
		}
		require.NoError(t, response.Body.Close())
		close(held)
		r := g.report()
		assert.Equal(t, 2, r.Answer)
		assert.Equal(t, 12, g.used(), "the estimate is given back")
	}
}

// An answer that is not streamed is whole when its JSON is: what it costs is known, although the body does not end.
func TestWholeAnswerWhoseBodyDoesNotEndCostsWhatItReports(t *testing.T) {
	whole := `{"choices":[{"message":{"content":"a \"}]\\"}}],"usage":{"prompt_tokens":1000,"completion_tokens":300}}`
	for _, side := range sides() {
		for name, test := range map[string]struct {
			body string
			used int
		}{
			"whole":     {whole, 1300},
			"not whole": {whole[:len(whole)-1], 2},
		} {
			t.Run(side+", "+name, func(t *testing.T) {
				held := make(chan struct{})
				g := newGateway(t, side, 1e6, llm.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					for part := range slices.Chunk([]byte(test.body), 7) {
						_, _ = w.Write(part)
						_ = http.NewResponseController(w).Flush()
					}
					<-held
				}))
				response, err := g.send("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"12345678"}]}`)
				require.NoError(t, err)
				_, err = io.ReadFull(response.Body, make([]byte, len(test.body)))
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				r := g.report()
				close(held)
				assert.Equal(t, test.used, r.Prompt+r.Answer)
				assert.Equal(t, test.used, g.used())
			})
		}
	}
}

// Pictures count as so many tokens each until the provider reports, and nothing is learnt from them of texts.
func TestPicturesOfAPromptCount(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo", 1000)
	forms := map[string]string{
		"/v1/chat/completions": `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture + `"}}`,
		"/v1/responses":        `{"type":"input_image","image_url":"data:image/png;base64,` + picture + `"}`,
		"/v1/messages":         `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}`,
	}
	for path, form := range forms {
		t.Run(path, func(t *testing.T) {
			mute := true
			g := newGateway(t, "client", 1e6, llm.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if mute {
					_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"1234"}}],"output":["1234"],"content":["1234"]}`)
					return
				}
				_, _ = io.WriteString(w, `{"choices":[{}],"usage":{"prompt_tokens":5000,"completion_tokens":1}}`)
			}))
			ask := func(content string) llm.Report {
				_, _, err := g.call(path, `{"model":"m","input":`+content+`,"messages":`+content+`}`)
				require.NoError(t, err)
				return g.report()
			}
			r := ask("[" + form + "," + form + "]")
			assert.GreaterOrEqual(t, r.Prompt, 4000, "two, in messages and in the input")
			assert.Less(t, r.Prompt, 4100)
			mute = false
			ask("[" + form + "]")
			mute = true
			assert.Equal(t, 20, ask(`["`+strings.Repeat("1234", 10)+`"]`).Prompt, "a token has four bytes still")
		})
	}
}

// partWriter writes so many events only.
type partWriter struct {
	http.ResponseWriter
	events int
}

func (w *partWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *partWriter) Write(p []byte) (int, error) {
	if w.events == 0 {
		return len(p), nil
	}
	w.events--
	return w.ResponseWriter.Write(p)
}

func TestOptionsAreValidated(t *testing.T) {
	_, err := llm.New(llm.Options{Quantile: 1, FirstAnswer: -1, MaxEvent: -1, Prices: map[string]llm.Price{"m": {Prompt: -1}}})
	for _, text := range []string{"Quantile is 1", "FirstAnswer is -1", "MaxEvent is -1", `price of "m" is -1`} {
		require.ErrorContains(t, err, text)
	}
}

// other is a request that is no call of a model.
func other() *http.Request { return httptest.NewRequest(http.MethodGet, "/v1/models", http.NoBody) }

func TestOtherRequestsArePassedOnWithoutAnAllocation(t *testing.T) {
	meter, err := llm.New(llm.Options{})
	require.NoError(t, err)
	response := new(http.Response)
	transport := meter.Transport(roundTrip(func(*http.Request) (*http.Response, error) { return response, nil }))
	handler := meter.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r, w := other(), httptest.NewRecorder()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := transport.RoundTrip(r); err != nil { //nolint:bodyclose // it has none
			t.Fatal(err)
		}
		handler.ServeHTTP(w, r)
	}))
}

func BenchmarkPassThrough(b *testing.B) {
	meter, err := llm.New(llm.Options{})
	require.NoError(b, err)
	response := new(http.Response)
	transport := meter.Transport(roundTrip(func(*http.Request) (*http.Response, error) { return response, nil }))
	r := other()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = transport.RoundTrip(r) //nolint:bodyclose // it has none
	}
}

func BenchmarkEvent(b *testing.B) {
	engine := core.New(core.Config{})
	defer engine.Close()
	require.NoError(b, engine.Load(rules.Set{Flow: []flow.Rule{{Resource: llm.TokensResource, Limit: 1e9}}}))
	meter, err := llm.New(llm.Options{Engine: engine, StopStreams: true})
	require.NoError(b, err)
	s := style{"/v1/chat/completions", "chat", true}
	transport := meter.Transport(llmtest.Local(&llmtest.Provider{Answer: answers(b.N + 1)}))
	r := httptest.NewRequest(http.MethodPost, s.path, strings.NewReader(s.body(10, 0)))
	b.ReportAllocs()
	b.ResetTimer()
	response, err := transport.RoundTrip(r)
	require.NoError(b, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(b, err)
	require.NoError(b, response.Body.Close())
}
