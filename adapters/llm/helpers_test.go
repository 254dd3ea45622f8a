package llm_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/adapters/llm/llmtest"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gateway is a provider, and a meter before it: in the client, or in a reverse proxy.
type gateway struct {
	t       *testing.T
	engine  *core.Engine
	clock   *clock.Virtual
	client  *http.Client
	url     string
	log     *lockedBuffer
	reports chan llm.Report
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// sides are where a meter can be.
func sides() []string { return []string{"client", "gateway"} }

// newGateway starts a provider, and a meter at a side, with a limit of tokens a minute.
func newGateway(t *testing.T, side string, limit float64, options llm.Options, provider http.Handler) *gateway {
	t.Helper()
	g := &gateway{
		t: t, clock: clock.NewVirtual(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)), log: new(lockedBuffer), reports: make(chan llm.Report, 100),
	}
	g.engine = core.New(core.Config{Clock: g.clock, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(g.engine.Close)
	g.load(rules.Set{Flow: []flow.Rule{{Name: "tokens", Resource: llm.TokensResource, Limit: limit, Window: time.Minute}}})
	options.Engine, options.Logger = g.engine, slog.New(slog.NewTextHandler(g.log, nil))
	options.Ended = func(r llm.Report) { g.reports <- r }
	meter, err := llm.New(options)
	require.NoError(t, err)
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	g.url, g.client = server.URL, server.Client()
	if side == "client" {
		g.client = &http.Client{Transport: meter.Transport(server.Client().Transport)}
		return g
	}
	to, err := url.Parse(server.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.ErrorLog = server.Client().Transport, slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front := httptest.NewServer(meter.Handler(proxy))
	t.Cleanup(front.Close)
	g.url, g.client = front.URL, front.Client()
	return g
}

func (g *gateway) load(set rules.Set) {
	g.t.Helper()
	require.NoError(g.t, g.engine.Load(set))
}

// used returns how many tokens the limit counts.
func (g *gateway) used() int {
	for _, r := range g.engine.Resource(llm.TokensResource).Snapshot().Rules {
		if r.Name == "tokens" {
			return int(int64(r.Quota.Limit) - r.Quota.Remaining)
		}
	}
	g.t.Fatal("there is no rule")
	return 0
}

// style is a style of calls, streamed or not.
type style struct {
	path, name string
	stream     bool
}

func styles() []style {
	return []style{
		{"/v1/chat/completions", "chat", false},
		{"/v1/chat/completions", "chat", true},
		{"/v1/responses", "responses", false},
		{"/v1/responses", "responses", true},
		{"/v1/messages", "messages", false},
		{"/v1/messages", "messages", true},
		{"/v1/embeddings", "embeddings", false},
	}
}

func (s style) String() string { return fmt.Sprintf("%s, stream %v", s.name, s.stream) }

// body returns a request with so many tokens.
func (s style) body(prompt, most int) string {
	text := strings.Repeat(llmtest.Word, prompt)
	fields := fmt.Sprintf(`"model":"m-1","stream":%v`, s.stream)
	if most > 0 {
		name := map[string]string{"responses": "max_output_tokens"}[s.name]
		if name == "" {
			name = "max_tokens"
		}
		fields += fmt.Sprintf(`,%q:%d`, name, most)
	}
	if s.name == "chat" && s.stream {
		fields += `,"stream_options":{"include_usage":true}`
	}
	if s.name == "chat" || s.name == "messages" {
		return fmt.Sprintf(`{%s,"messages":[{"role":"user","content":%q}]}`, fields, text)
	}
	return fmt.Sprintf(`{%s,"input":%q}`, fields, text)
}

const secret = "sk-very-secret-key"

// call makes a call and reads its answer.
func (g *gateway) call(path, body string, header ...string) (status int, answer string, err error) {
	g.t.Helper()
	response, err := g.send(path, body, header...)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}

func (g *gateway) send(path, body string, header ...string) (*http.Response, error) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+path, strings.NewReader(body))
	require.NoError(g.t, err)
	r.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return g.client.Do(r)
}

// report returns the report of the next call that has ended.
func (g *gateway) report() llm.Report {
	g.t.Helper()
	select {
	case r := <-g.reports:
		return r
	case <-time.After(time.Minute):
		g.t.Fatal("the call does not end")
		return llm.Report{}
	}
}
