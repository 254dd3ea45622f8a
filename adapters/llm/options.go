package llm

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
)

// The default resources.
const (
	TokensResource = "llm:tokens"
	CostResource   = "llm:cost"
)

// Options are what a [Meter] does.
type Options struct {
	// Engine has the rules. Defaults to [penstock.Default].
	Engine *core.Engine

	// Resource is what tokens are taken from. Defaults to [TokensResource].
	Resource string

	// CostResource is what millionths of money are taken from. Defaults to "llm:cost".
	CostResource string

	// Prices are what tokens cost, by model. A name that ends in "*" is that of all models that
	// begin so; the longest name counts. Calls of other models cost nothing. Prices of rule documents,
	// see [PriceKind], come first: a model that they name has no price here.
	Prices map[string]Price

	// Tenant returns on whose behalf a request is made, "" if that is unknown. Defaults to nobody.
	Tenant func(*http.Request) string

	// Caller returns whose answers are alike: a quantile is learnt for each model and caller.
	// Defaults to Tenant.
	Caller func(*http.Request) string

	// Attributes returns other options of the calls, as in nethttp.Options. Defaults to nothing.
	Attributes func(*http.Request) []core.Option

	// Count counts the tokens of a text. It must be safe for concurrent use. Defaults to the
	// length, with as many bytes a token as the usage that providers have reported says, and
	// four at first.
	Count func(model, text string) int

	// Quantile of the answers is what is taken for an answer in advance, more than 0 and less
	// than 1. Defaults to 0.8.
	Quantile float64

	// FirstAnswer is how many tokens an answer is expected to have while nothing is known of its
	// model. Defaults to 512.
	FirstAnswer int

	// MaxLearnt is how many models and callers are told apart. Defaults to 1000, about 400 bytes
	// each; others share the quantile of their model, or that of all.
	MaxLearnt int

	// StopStreams has a stream end when a rule lets nothing more pass and what was taken for it in
	// advance is spent, or more was taken than the rule lets pass: after the event that shows it, with the events by which the API tells that an answer was cut at its
	// greatest length. Defaults to no: the stream goes on, and the limit is in debt.
	StopStreams bool

	// AskForUsage asks for the usage in streams of chat completions, unless the request says
	// itself whether it wants it, and takes the event that has it out of the stream.
	AskForUsage bool

	// Throttle and RetryBudgets refuse calls of providers that reject most of them, or that do
	// not want any yet: see [Answer]. Only for [Meter.Transport]. Default to none.
	Throttle     *outgoing.Throttle
	RetryBudgets *outgoing.RetryBudgets

	// Target returns what Throttle and RetryBudgets know a request by. Defaults to the host, the
	// hash of the API key and the model: that is what providers limit.
	Target func(*http.Request, Call) string

	// Ended is told of each guarded call that has ended. It must not block. Defaults to nothing.
	Ended func(Report)

	// MaxRequest is how much of the body of a request is read to estimate it, MaxResponse how much
	// of an answer that is not streamed, MaxEvent how long an event of a stream may be. In bytes;
	// default to 8 MiB, 8 MiB and 1 MiB.
	MaxRequest, MaxResponse, MaxEvent int

	// Logger is told of what cannot be read. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Price is what a million tokens cost, in whatever money the limits are in. Cached is the price of
// tokens of a prompt that the provider had in a cache, CacheWrite of those that it has put into one and
// bills as such, as Anthropic does. Both default to Prompt.
type Price struct{ Prompt, Cached, CacheWrite, Answer float64 }

// Call is what is known of a call before it is sent.
type Call struct {
	Style  string // chat, responses, embeddings or messages
	Model  string // as the request says, at most 128 bytes
	Tenant string
	Key    string // made of a hash of the API key; "" if there is none
}

// Report is what a call has cost.
type Report struct {
	Call

	Prompt, Answer int     // tokens
	Estimated      int     // tokens of the answer that were taken in advance
	Cost           float64 // by the price of its model; 0 if it has none
	Reported       bool    // the provider has reported the usage; else it was counted
	Stopped        bool    // the stream was ended by StopStreams
	Unread         string  // why the request or the answer could not be read; "" if it could
	Status         int     // of the response, 0 if there was none
}

const (
	defaultQuantile    = 0.8
	defaultFirstAnswer = 512
	defaultMaxLearnt   = 1000
	maxModelName       = 128
	defaultMaxBody     = 8 << 20
	defaultMaxEvent    = 1 << 20
	maxPrice           = 1e9
)

func (o Options) withDefaults() Options {
	if o.Engine == nil {
		o.Engine = penstock.Default()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Tenant == nil {
		o.Tenant = func(*http.Request) string { return "" }
	}
	if o.Caller == nil {
		o.Caller = o.Tenant
	}
	setDefault(&o.Resource, TokensResource)
	setDefault(&o.CostResource, CostResource)
	setDefault(&o.Quantile, defaultQuantile)
	setDefault(&o.FirstAnswer, defaultFirstAnswer)
	setDefault(&o.MaxLearnt, defaultMaxLearnt)
	setDefault(&o.MaxRequest, defaultMaxBody)
	setDefault(&o.MaxResponse, defaultMaxBody)
	setDefault(&o.MaxEvent, defaultMaxEvent)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (o *Options) validate() error {
	errs := []error{
		check(o.Quantile > 0 && o.Quantile < 1, "Options.Quantile is %v: must be more than 0 and less than 1", o.Quantile),
		check(o.FirstAnswer > 0, "Options.FirstAnswer is %d: must be 1 or more", o.FirstAnswer),
		check(o.MaxLearnt > 0, "Options.MaxLearnt is %d: must be 1 or more", o.MaxLearnt),
		check(o.MaxRequest > 0, "Options.MaxRequest is %d: must be 1 or more", o.MaxRequest),
		check(o.MaxResponse > 0, "Options.MaxResponse is %d: must be 1 or more", o.MaxResponse),
		check(o.MaxEvent > 0, "Options.MaxEvent is %d: must be 1 or more", o.MaxEvent),
	}
	for model, p := range o.Prices {
		for _, price := range []float64{p.Prompt, p.Cached, p.CacheWrite, p.Answer} {
			fault := priceFault(price)
			errs = append(errs, check(fault == "", "Options.Prices: a price of %q %s", model, fault))
		}
	}
	return errors.Join(errs...)
}

func check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("llm: "+format, args...)
}
