package llm_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// recorded is a stream as the public documentation of an API shows it, of an answer of four words that
// are not ASCII, with the usage of 7 tokens of prompt and 40 of the answer.
type recorded struct {
	path, text, usage string // usage: the part of the text that reports it
}

const words = "Grüße, 世界 🌍 ok"

func recordings() map[string]recorded {
	chatUsage := `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":40,"total_tokens":47}}` + "\n\n"
	chat := ""
	for _, word := range strings.SplitAfter(words, " ") {
		chat += `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + word + `"},"finish_reason":null}],"usage":null}` + "\n\n"
	}
	chat += ": a comment\n\n" +
		`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}` + "\n\n"
	messages := "event: message_start\r\n" +
		`data: {"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":7,"output_tokens":1}}}` + "\r\n\r\n" +
		"event: content_block_start\r\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\r\n\r\n" +
		"event: ping\r\n" + `data: {"type": "ping"}` + "\r\n\r\n"
	for _, word := range strings.SplitAfter(words, " ") {
		messages += "event: content_block_delta\r\n" + `data:{"type":"content_block_delta","index":0,` + "\r\n" +
			`data: "delta":{"type":"text_delta","text":"` + word + `"}}` + "\r\n\r\n"
	}
	messages += "event: content_block_stop\r\n" + `data: {"type":"content_block_stop","index":0}` + "\r\n\r\n"
	messagesUsage := `,"usage":{"output_tokens":40}`
	messages += "event: message_delta\r\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}` + messagesUsage + "}\r\n\r\n" +
		"event: message_stop\r\n" + `data: {"type":"message_stop"}` + "\r\n\r\n"
	responses := "event: response.created\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","created_at":1,"model":"m","error":null,"usage":null}}` + "\n\n"
	for i, word := range strings.SplitAfter(words, " ") {
		responses += "event: response.output_text.delta\n" +
			fmt.Sprintf(`data: {"type":"response.output_text.delta","sequence_number":%d,"output_index":0,"delta":"%s"}`, i+1, word) + "\n\n"
	}
	responsesUsage := `"usage":{"input_tokens":7,"output_tokens":40,"total_tokens":47}`
	responses += `data: {"type":"response.output_text.done","sequence_number":8,"text":"` + words + `"}` + "\n\n" +
		`data: {"type":"response.completed","sequence_number":9,"response":{"id":"r1","created_at":1,"model":"m","error":null,` + responsesUsage + `}}` + "\n\n"
	return map[string]recorded{
		"chat":      {"/v1/chat/completions", chat + chatUsage + "data: [DONE]\n\n", chatUsage},
		"messages":  {"/v1/messages", messages, messagesUsage},
		"responses": {"/v1/responses", responses, responsesUsage},
	}
}

// chopped serves a text in pieces of one to most bytes, which do not end where runes, lines or events do;
// if breaks, the connection ends after that.
func chopped(text string, most int, seed uint64, breaks bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		random := rand.New(rand.NewPCG(seed, 1))
		w.Header().Set("Content-Type", "text/event-stream")
		for rest := text; rest != ""; {
			n := min(len(rest), 1+random.IntN(most))
			_, _ = io.WriteString(w, rest[:n])
			_ = http.NewResponseController(w).Flush()
			rest = rest[n:]
		}
		if breaks {
			panic(http.ErrAbortHandler)
		}
	}
}

// streamed makes a call of a provider through a meter, and returns what the client gets and what is
// reported.
func streamed(t *testing.T, provider http.Handler, path string, limit float64, options llm.Options) (text string, of llm.Report, engine *core.Engine) {
	t.Helper()
	engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "tokens", Resource: llm.TokensResource, Limit: limit, Window: 24 * time.Hour, Algorithm: flow.FixedWindow},
		{Name: "failures", Resource: llm.TokensResource, Limit: 1000, Window: 24 * time.Hour, Algorithm: flow.FixedWindow, Counts: rule.CountsFailures},
	}}))
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	reports := make(chan llm.Report, 1)
	options.Engine, options.Logger, options.FirstAnswer = engine, slog.New(slog.DiscardHandler), 5
	options.Ended = func(r llm.Report) { reports <- r }
	meter, err := llm.New(options)
	require.NoError(t, err)
	client := &http.Client{Transport: meter.Transport(server.Client().Transport)}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+path,
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"abcdefgh"}]}`))
	require.NoError(t, err)
	response, err := client.Do(r)
	require.NoError(t, err)
	got, _ := io.ReadAll(response.Body)
	require.NoError(t, response.Body.Close())
	return string(got), <-reports, engine
}

func taken(engine *core.Engine, rule string) float64 {
	for _, r := range engine.Resource(llm.TokensResource).Snapshot().Rules {
		if r.Name == rule {
			return r.Quota.Used
		}
	}
	return -1
}

// However a stream is cut into pieces, it comes as it was, and costs what is reported.
func TestStreamsInOddPiecesCostWhatTheyReport(t *testing.T) {
	for style, of := range recordings() {
		for seed := range uint64(6) {
			text, report, engine := streamed(t, chopped(of.text, []int{1, 2, 7, 100, 1000, 1 << 20}[seed], seed, false), of.path, 1e6, llm.Options{StopStreams: true})
			assert.Equal(t, of.text, text, style)
			assert.Equal(t, []any{7, 40, true, false, ""}, []any{report.Prompt, report.Answer, report.Reported, report.Stopped, report.Unread}, style)
			assert.InDelta(t, 47, taken(engine, "tokens"), 0, style)
			assert.InDelta(t, 0, taken(engine, "failures"), 0, style)
		}
	}
}

// Without a usage, the text of the answer is counted, whatever else the stream says.
func TestStreamsWithoutUsageAreCounted(t *testing.T) {
	for style, of := range recordings() {
		count := func(_ string, text string) int { return utf8.RuneCountInString(text) }
		text, report, engine := streamed(t, chopped(strings.Replace(of.text, of.usage, "", 1), 3, 1, false), of.path, 1e6, llm.Options{Count: count})
		if style == "responses" {
			text = strings.Replace(text, `"error":null,}}`, "", 1) // what is left of that event is no JSON
		}
		assert.True(t, utf8.ValidString(text))
		want := utf8.RuneCountInString(words)
		if style == "messages" {
			want++ // a token was reported at the beginning
		}
		assert.Equal(t, want, report.Answer, style)
		assert.InDelta(t, report.Prompt+want, taken(engine, "tokens"), 0, style)
	}
}

// A stream that fails in the middle costs what has come, and has failed.
func TestStreamsThatFailInTheMiddleCostWhatHasCome(t *testing.T) {
	count := func(_ string, text string) int { return utf8.RuneCountInString(text) }
	come := utf8.RuneCountInString("Grüße, 世界 ")
	for style, failure := range map[string]string{
		"chat":      `data: {"error":{"message":"overloaded","type":"server_error"}}` + "\n\n",
		"messages":  "event: error\r\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\r\n\r\n",
		"responses": `data: {"type":"response.failed","sequence_number":5,"response":{"id":"r1","status":"failed","error":{"code":"server_error"},"usage":null}}` + "\n\n",
	} {
		of := recordings()[style]
		cut, _, _ := strings.Cut(of.text, "🌍")
		cut = cut[:max(strings.LastIndex(cut, "\n\n"), strings.LastIndex(cut, "\r\n\r\n"))] + "\r\n\r\n"
		for _, breaks := range []bool{false, true} {
			sent := cut + failure
			if breaks {
				sent = cut + of.text[len(cut):len(cut)+9]
			}
			text, report, engine := streamed(t, chopped(sent, 5, 3, breaks), of.path, 1e6, llm.Options{Count: count, StopStreams: true})
			assert.Equal(t, sent, text, style)
			want := come
			if style == "messages" {
				want++
			}
			assert.Equal(t, want, report.Answer, "%s, breaks %v", style, breaks)
			assert.InDelta(t, report.Prompt+want, taken(engine, "tokens"), 0, "%s, breaks %v", style, breaks)
			assert.Positive(t, taken(engine, "failures"), "%s, breaks %v", style, breaks)
		}
	}
}

// A stream that is stopped ends with whole events, however it came.
func TestStreamsInOddPiecesStopWithWholeEvents(t *testing.T) {
	count := func(_ string, text string) int { return utf8.RuneCountInString(text) }
	for style, of := range recordings() {
		before, _, _ := strings.Cut(of.text, "🌍")
		_, known, _ := streamed(t, chopped(before, 1<<20, 1, true), of.path, 1e6, llm.Options{Count: count})
		limit := float64(known.Prompt + known.Answer) // so much has come with the second word
		for _, most := range []int{1, 4, 1 << 20} {
			text, report, engine := streamed(t, chopped(of.text, most, 2, false), of.path, limit, llm.Options{Count: count, StopStreams: true})
			assert.True(t, report.Stopped, style)
			assert.True(t, utf8.ValidString(text), style)
			assert.True(t, strings.HasSuffix(text, "\n\n"), style)
			assert.Contains(t, text, "世界", style)
			assert.NotContains(t, text, `ok"`, style)
			assert.Contains(t, text, map[string]string{
				"chat": "data: [DONE]", "messages": `"stop_reason":"max_tokens"`, "responses": "response.incomplete",
			}[style])
			assert.InDelta(t, limit, taken(engine, "tokens"), 0, style)
		}
	}
}
