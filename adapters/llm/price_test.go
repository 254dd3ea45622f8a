package llm_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/llm"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// spender calls models whose answers have the usage that the call says, and is charged by documents.
type spender struct {
	t       *testing.T
	clock   *clock.Virtual
	engine  *core.Engine
	client  *http.Client
	url     string
	reports chan llm.Report
}

func newSpender(t *testing.T, document string, prices map[string]llm.Price) *spender {
	t.Helper()
	s := &spender{t: t, clock: clock.NewVirtual(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)), reports: make(chan llm.Report, 10)}
	s.engine = core.New(core.Config{Clock: s.clock, Logger: slog.New(slog.DiscardHandler), Kinds: []rule.Definition{llm.PriceKind()}})
	t.Cleanup(s.engine.Close)
	s.load(document)
	meter, err := llm.New(llm.Options{
		Engine: s.engine, FirstAnswer: 1, Prices: prices, Logger: slog.New(slog.DiscardHandler),
		Tenant: func(r *http.Request) string { return r.Header.Get("Tenant") },
		Ended:  func(r llm.Report) { s.reports <- r },
	})
	require.NoError(t, err)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage":`+r.Header.Get("Usage")+`}`)
	}))
	t.Cleanup(provider.Close)
	s.url, s.client = provider.URL, &http.Client{Transport: meter.Transport(provider.Client().Transport)}
	return s
}

func (s *spender) load(document string) {
	s.t.Helper()
	set, err := rules.NewTable(llm.PriceKind()).Parse("prices.yaml", []byte(document))
	require.NoError(s.t, err)
	require.NoError(s.t, s.engine.Load(set))
}

// cost returns what a call costs, in millionths; -1 if it is refused.
func (s *spender) cost(tenant, path, model, usage string) float64 {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+path, strings.NewReader(`{"model":"`+model+`","max_tokens":1,"max_output_tokens":1}`))
	require.NoError(s.t, err)
	r.Header.Set("Tenant", tenant)
	r.Header.Set("Usage", usage)
	response, err := s.client.Do(r)
	if err != nil {
		require.True(s.t, core.IsRefusal(err), err)
		return -1
	}
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, response.Body.Close())
	return (<-s.reports).Cost * 1e6
}

const (
	budget = `
hotParam:
  - {name: budget, resource: "llm:cost", param: tenant, limit: 5000000, window: 1d, timeZone: Europe/Berlin} # 5 a day
`
	priceTable = `
llmPrice:
  - {name: gpt-5, prompt: 1.25, cached: 0.125, answer: 10}
  - {name: small, model: "gpt-5-mini*", prompt: 0.25, answer: 2}
  - {name: claude, model: claude-sonnet-*, match: "*:cost", prompt: 3, cached: 0.3, cacheWrite: 3.75, answer: 15}
  - {name: embeddings, model: text-*, prompt: 0.02}
  - {name: another team's, resource: "research:cost", model: "*", prompt: 1000}
`
)

func TestPricesOfDocumentsAreCharged(t *testing.T) {
	s := newSpender(t, budget+priceTable, map[string]llm.Price{"gpt-5": {Prompt: 9e6}, "old": {Prompt: 7}})
	for _, test := range []struct {
		path, model, usage string
		want               float64
	}{
		{"/v1/chat/completions", "gpt-5", `{"prompt_tokens":1000,"completion_tokens":100}`, 1250 + 1000},
		{"/v1/chat/completions", "gpt-5", `{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":600}}`, 400*1.25 + 600*.125 + 1000},
		{"/v1/responses", "gpt-5-mini-2026-01-01", `{"input_tokens":1000,"output_tokens":100,"input_tokens_details":{"cached_tokens":600}}`, 1000*.25 + 200},
		{"/v1/messages", "claude-sonnet-4-5", `{"input_tokens":1000,"output_tokens":100}`, 3000 + 1500},
		{"/v1/messages", "claude-sonnet-4-5", `{"input_tokens":10,"cache_read_input_tokens":2000,"cache_creation_input_tokens":400,"output_tokens":100}`, 30 + 600 + 1500 + 1500},
		{"/v1/embeddings", "text-embedding-3-small", `{"prompt_tokens":1000,"total_tokens":1000}`, 20},
		{"/v1/chat/completions", "old", `{"prompt_tokens":100,"completion_tokens":100}`, 700}, // of the program
		{"/v1/chat/completions", "gpt-6", `{"prompt_tokens":1000,"completion_tokens":100}`, 0},
	} {
		assert.InDelta(t, test.want, s.cost("ann", test.path, test.model, test.usage), 1e-6, "%s %s", test.model, test.usage)
	}
}

func TestTenantSpendsNoMoreThanItsMoneyADay(t *testing.T) {
	s := newSpender(t, budget+priceTable, nil)
	call := func(tenant, model string, prompt string) float64 {
		return s.cost(tenant, "/v1/chat/completions", model, `{"prompt_tokens":`+prompt+`,"completion_tokens":0}`)
	}
	assert.InDelta(t, 2.5e6, call("ann", "gpt-5", "2000000"), 1e-6)
	assert.InDelta(t, 2.5e6, call("ann", "gpt-5-mini", "10000000"), 1e-6)
	assert.InDelta(t, -1, call("ann", "gpt-5", "1"), 0, "5 are spent")
	assert.InDelta(t, -1, call("ann", "gpt-5-mini", "1"), 0)
	assert.InDelta(t, 1.25, call("bob", "gpt-5", "1"), 1e-6)
	s.clock.Advance(10*time.Hour + 59*time.Minute) // it is summer or winter in Berlin
	assert.InDelta(t, -1, call("ann", "gpt-5", "1"), 0)
	s.clock.Advance(2 * time.Minute)
	assert.InDelta(t, 1.25, call("ann", "gpt-5", "1"), 1e-6)
}

func TestPriceThatChangesIsThatOfTheNextCall(t *testing.T) {
	s := newSpender(t, budget+priceTable, map[string]llm.Price{"gpt-5": {Prompt: 7}})
	call := func() float64 {
		return s.cost("ann", "/v1/chat/completions", "gpt-5", `{"prompt_tokens":1000,"completion_tokens":0}`)
	}
	assert.InDelta(t, 1250, call(), 1e-6)
	s.load(budget + strings.Replace(priceTable, "prompt: 1.25", "prompt: 2", 1))
	assert.InDelta(t, 2000, call(), 1e-6)
	left := func() float64 {
		for _, q := range s.engine.Quotas(llm.CostResource, core.String("tenant", "ann")) {
			return q.Quota.Effective - float64(q.Quota.Remaining)
		}
		return 0
	}
	assert.InDelta(t, 3250, left(), 1e-6, "what was spent stays")
	s.load(budget)
	assert.InDelta(t, 7000, call(), 1e-6, "that of the program")
	s.load(budget + "llmPrice:\n  - {name: all, model: \"*\", prompt: 1}\n")
	assert.InDelta(t, 1000, call(), 1e-6)
}

func TestMistakesInPrices(t *testing.T) {
	_, err := rules.NewTable(llm.PriceKind()).Parse("prices.yaml", []byte(`llmPrice:
  - {prompt: 1}
  - {name: b, answer: 1}
  - {name: c, prompt: -1, answer: 1e10}
  - {name: d, prompt: 1, cached: 0}
  - {name: e, prompt: 1, model: "gpt-*-mini"}
  - {name: f, prompt: 1, output: 3}
  - {name: f, prompt: two}
`))
	require.Error(t, err)
	for _, want := range []string{
		"prices.yaml:2:5: llmPrice[0]: name is missing: name the price, as by the model",
		`prices.yaml:3:5: llmPrice rule "b": prompt is missing: write what a million tokens of prompts cost`,
		`prices.yaml:4:23: llmPrice rule "c": prompt is -1: must be from 0 to 1e+09 for a million tokens`,
		`prices.yaml:4:35: llmPrice rule "c": answer is 1e+10`,
		`prices.yaml:5:34: llmPrice rule "d": cached is 0: leave it out for the price of prompt`,
		`prices.yaml:6:33: llmPrice rule "e": model is "gpt-*-mini": * stands at the end only`,
		`prices.yaml:7:26: llmPrice rule "f": unknown field "output"`,
		`prices.yaml:8:23: llmPrice rule "f": prompt`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestExamplesOfPricesAreSound(t *testing.T) {
	table := rules.NewTable(llm.PriceKind())
	text, err := table.Example("llmPrice")
	require.NoError(t, err)
	set, err := table.Parse("example.yaml", text)
	require.NoError(t, err, string(text))
	assert.Len(t, set.Custom, 4, "one shows the fields of all kinds")
}
