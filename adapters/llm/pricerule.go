package llm

import (
	"cmp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// priceKind is the name of the list of prices in rule documents.
const priceKind rule.Kind = "llmPrice"

// PriceRule is the price of a model in a rule document. It limits nothing: a [Meter] takes what calls of
// the model cost from the resource that the rule is for.
type PriceRule struct {
	// Name is unique among the prices. It defaults to Resource or Match.
	Name string

	// Resource is what millionths of money are taken from, as [Options.CostResource], and Match a pattern
	// of such names. Defaults to [CostResource].
	Resource, Match string

	// Model is the name of the model, as requests have it. One that ends in "*" is that of all models
	// that begin so; the longest name counts. Defaults to Name.
	Model string

	// Price is what a million tokens cost. Prompt is required.
	Price

	// No document has these.
	Shared, Shadow bool
	Origin         string
}

// PriceKind returns the kind of rules by which documents have prices, for core.Config.Kinds. A change
// of a price is in force for the calls that begin after it. Meters see the prices of their engine;
// of two prices of one model that by the name of the rule comes first is in force.
func PriceKind() *rule.Type[PriceRule] {
	return rule.Define(rule.Spec[PriceRule]{
		Kind: priceKind, Phase: rule.PhaseAccess, Reason: rule.RateLimited, Common: commonOfPrice,
		Fields: priceFields(),
		Examples: []rule.Example[PriceRule]{
			{
				About:  "a model whose cached tokens are cheap, per million tokens",
				Rule:   PriceRule{Name: "gpt-5", Price: Price{Prompt: 1.25, Cached: 0.125, Answer: 10}},
				Fields: []string{"name", "prompt", "cached", "answer"},
			},
			{
				About: "all models of a family, for what a team spends; this provider bills what it writes into its cache",
				Rule: PriceRule{
					Name: "sonnet", Resource: "research:cost", Model: "claude-sonnet-*",
					Price: Price{Prompt: 3, Cached: 0.3, CacheWrite: 3.75, Answer: 15},
				},
				Fields: []string{"name", "resource", "model", "prompt", "cached", "cacheWrite", "answer"},
			},
			{
				About:  "embeddings have no answer; all resources of costs have this price",
				Rule:   PriceRule{Name: "text-embedding-*", Match: "*:cost", Price: Price{Prompt: 0.02}},
				Fields: []string{"name", "match", "prompt"},
			},
		},
		Defaults: func(r *PriceRule) {
			if r.Match == "" {
				r.Resource = cmp.Or(r.Resource, CostResource)
			}
			r.Model = cmp.Or(r.Model, r.Name)
		},
		Validate: validatePrice,
		New:      func(*PriceRule, rule.Env) rule.Limiter { return priceLimiter{} },
	})
}

func priceFields() []rule.Field[PriceRule] {
	number := func(path, about string, at func(*PriceRule) *float64) rule.Field[PriceRule] {
		return rule.FieldOf(path, at).Says(about)
	}
	return []rule.Field[PriceRule]{
		rule.FieldOf("name", func(r *PriceRule) *string { return &r.Name }).
			Required("is missing: name the price, as by the model").Says("unique among the prices"),
		rule.FieldOf("resource", func(r *PriceRule) *string { return &r.Resource }).
			Says("what millionths of money are taken from").Otherwise(CostResource),
		rule.FieldOf("match", func(r *PriceRule) *string { return &r.Match }).
			Says("a pattern of such names, in place of resource").Otherwise("none"),
		rule.FieldOf("model", func(r *PriceRule) *string { return &r.Model }).
			Says("the model, as requests name it; with * at the end all that begin so").Otherwise("name"),
		number("prompt", "what a million tokens of prompts cost", func(r *PriceRule) *float64 { return &r.Prompt }).
			Required("is missing: write what a million tokens of prompts cost"),
		number("cached", "that of tokens of prompts that the provider had in a cache", func(r *PriceRule) *float64 { return &r.Cached }).
			NotZero("leave it out for the price of prompt").Otherwise("prompt"),
		number("cacheWrite", "that of tokens of prompts that it has put into one", func(r *PriceRule) *float64 { return &r.CacheWrite }).
			NotZero("leave it out for the price of prompt").Otherwise("prompt"),
		number("answer", "what a million tokens of answers cost", func(r *PriceRule) *float64 { return &r.Answer }).
			Otherwise("0, as of embeddings"),
	}
}

func commonOfPrice(r *PriceRule) rule.Common {
	return rule.Common{Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow}
}

func validatePrice(r *PriceRule) []rule.Fault {
	var f rule.Faults
	for _, price := range []struct {
		field string
		of    float64
	}{{"prompt", r.Prompt}, {"cached", r.Cached}, {"cacheWrite", r.CacheWrite}, {"answer", r.Answer}} {
		if fault := priceFault(price.of); fault != "" {
			f.Add(price.field, "%s", fault)
		}
	}
	switch name := strings.TrimSuffix(r.Model, "*"); {
	case len(r.Model) > maxModelName:
		f.Add("model", "has %d bytes: of the names of models %d count", len(r.Model), maxModelName)
	case strings.Contains(name, "*"):
		f.Add("model", "is %s: * stands at the end only", rule.Quote(r.Model))
	}
	return f
}

// priceLimiter lets all calls pass.
type priceLimiter struct{}

func (priceLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) { return 0, rule.Pass }
func (priceLimiter) GiveBack(clock.Instant, rule.Ticket, int32)     {}
func (priceLimiter) RetryAfter(rule.Call) time.Duration             { return 0 }
func (priceLimiter) Status(clock.Instant) rule.Status               { return rule.Status{} }
func (priceLimiter) Idle(clock.Instant) bool                        { return true }

// prices are those of the documents of an engine, and then those of the program.
type prices struct {
	engine   *core.Engine
	resource string
	code     priceTable
	present  atomic.Pointer[documentPrices]
}

// documentPrices are those of one revision of the rules. They never change.
type documentPrices struct {
	revision uint64
	table    priceTable
}

// of returns the present price of a model; false if it has none.
func (p *prices) of(model string) (Price, bool) {
	present := p.present.Load()
	if revision := p.engine.Revision(); present == nil || present.revision != revision {
		present = &documentPrices{revision, p.read()}
		p.present.Store(present)
	}
	if price, ok := present.table.of(model); ok {
		return price, true
	}
	return p.code.of(model)
}

// read returns the prices of the rules that are in force.
func (p *prices) read() priceTable {
	byModel := make(map[string]Price)
	for _, applied := range p.engine.Explain(p.resource) {
		if applied.Kind != priceKind || applied.Off {
			continue
		}
		r, ok := applied.Rule.Value().(PriceRule)
		if !ok {
			continue
		}
		if _, before := byModel[r.Model]; !before {
			byModel[r.Model] = r.Price
		}
	}
	return newPriceTable(byModel)
}
