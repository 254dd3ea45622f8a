package llm_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/llm"
)

// A request is read as providers read it: by names that are exactly so, and by what of it has the right type.
// Else a client could have its calls counted as those of another model.
func TestOddRequestsAreReadAsProvidersReadThem(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":7,"completion_tokens":40}}`)
	})
	for name, test := range map[string]struct {
		body      string
		estimated int // tokens of the answer
	}{
		"other case":            {`{"model":"dear","Model":"cheap","MODEL":"cheap","messages":"abc"}`, 256},
		"twice":                 {`{"model":"cheap","model":"dear","messages":"abc"}`, 256},
		"a number with a point": {`{"model":"dear","max_tokens":5.0,"messages":"abc"}`, 5},
		"an exponent":           {`{"model":"dear","max_tokens":1e1,"messages":"abc"}`, 10},
		"out of range":          {`{"model":"dear","max_tokens":1e300,"n":-1e300,"messages":"abc"}`, 256},
		"a text for a number":   {`{"model":"dear","max_tokens":"5","n":"x","stream":"no","messages":"abc"}`, 5},
		"several answers":       {`{"model":"dear","max_tokens":5,"n":3.0,"messages":"abc"}`, 15},
		"null":                  {`{"model":"dear","max_tokens":null,"n":null,"stream":null,"messages":"abc"}`, 256},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "client", 1e6, llm.Options{FirstAnswer: 256}, answer)
			_, _, err := g.call("/v1/chat/completions", test.body)
			require.NoError(t, err)
			r := g.report()
			assert.Empty(t, r.Unread)
			assert.Equal(t, "dear", r.Model)
			assert.Equal(t, test.estimated, r.Estimated)
			assert.Equal(t, 40, r.Answer)
		})
	}
}

// What a provider reports counts also if some of it has an odd type.
func TestOddUsageIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		path, answer   string
		prompt, tokens int
	}{
		"points": {
			"/v1/chat/completions",
			`{"created":1.5,"choices":[{"index":"0","message":{"content":"ok"}}],"usage":{"prompt_tokens":7.0,"completion_tokens":4e1}}`, 7, 40,
		},
		"texts": {
			"/v1/messages",
			`{"id":5,"content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":"7","output_tokens":"40","cache_read_input_tokens":null}}`, 7, 40,
		},
		"no numbers": {
			"/v1/chat/completions",
			`{"choices":[{"message":{"content":"1234567"}}],"usage":{"prompt_tokens":{},"completion_tokens":"many"}}`, 1, 2,
		},
		"a stream": {
			"/v1/chat/completions", "data: " + `{"created":1.5,"choices":[{"index":0,"delta":{"content":"ok"}}]}` + "\n\n" +
				"data: " + `{"created":1.5,"choices":[],"usage":{"prompt_tokens":7.0,"completion_tokens":40.0}}` + "\n\ndata: [DONE]\n\n", 7, 40,
		},
		"a prompt told once": {
			"/v1/messages", `data: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"message_delta","usage":{"input_tokens":0,"output_tokens":40}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n", 7, 40,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, "client", 1e6, llm.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[bool]string{false: "application/json", true: "text/event-stream"}[test.answer[0] == 'd'])
				_, _ = io.WriteString(w, test.answer)
			}))
			_, body, err := g.call(test.path, `{"model":"m","messages":"abc"}`)
			require.NoError(t, err)
			assert.Equal(t, test.answer, body)
			r := g.report()
			assert.Equal(t, test.prompt, r.Prompt)
			assert.Equal(t, test.tokens, r.Answer)
			assert.Equal(t, test.prompt+test.tokens, g.used())
			assert.Empty(t, r.Unread)
		})
	}
}
