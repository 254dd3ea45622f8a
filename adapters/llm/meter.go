package llm

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"sync"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Meter takes what calls of language models cost from the limits of an engine. Make it with [New].
// It is safe for concurrent use.
type Meter struct {
	options Options
	prices  prices
	learnt  *learnt

	warned sync.Map // reasons why something could not be read
}

// New returns a meter. The error tells all mistakes in the options.
func New(options Options) (*Meter, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	return &Meter{
		options: options, prices: prices{engine: options.Engine, resource: options.CostResource, code: newPriceTable(options.Prices)},
		learnt: newLearnt(options.Quantile, options.FirstAnswer, options.MaxLearnt),
	}, nil
}

// call is a guarded call.
type call struct {
	meter   *Meter
	request *http.Request
	prompt  prompt
	caller  string
	price   Price
	priced  bool

	promptBPT, answerBPT float64 // bytes a token, by what is known

	mu       sync.Mutex // guards what follows
	report   Report
	cached   int // tokens that were in a cache
	inPrompt int // how many of them are among those of the prompt
	written  int // tokens of the prompt that were put into a cache
	tokens   account
	money    account
	counted  int  // bytes of the answer
	byCount  int  // tokens of the answer, by Options.Count
	base     int  // tokens of the answer that were reported, when
	baseAt   int  // so many bytes,
	baseBy   int  // or so many tokens, were counted
	reckoned bool // the provider has reported tokens of the answer
	finished bool // the answer came to its natural end
	broken   bool // the provider has told that it failed meanwhile
	ended    bool
}

// account is what a call has taken of one resource: what is spent, and what is held for the rest.
type account struct{ spent, held core.Guard }

// begin makes a call of a request whose body says so much, and takes what it will cost.
func (m *Meter) begin(ctx context.Context, r *http.Request, style string, p prompt) (*call, error) {
	c := &call{meter: m, request: r, prompt: p, caller: m.options.Caller(r)}
	c.report.Call = Call{Style: style, Model: p.model, Tenant: m.options.Tenant(r), Key: keyOf(r.Header)}
	c.promptBPT, c.answerBPT = m.learnt.bytesPerToken(p.model)
	c.price, c.priced = m.prices.of(p.model)
	c.report.Prompt = c.count(p.bytes, p.text, c.promptBPT) + p.images*imageTokens
	if style != embeddings {
		c.report.Estimated = c.estimate()
	}
	if p.unread != "" {
		c.unread(p.unread)
	}
	opts := append([]core.Option{core.Attributes(attribute, c)}, m.optionsOf(ctx, r)...)
	if err := c.tokens.open(ctx, m.options.Engine, m.options.Resource, c.report.Prompt, c.report.Estimated, opts); err != nil {
		return nil, err
	}
	if c.priced {
		if err := c.openMoney(ctx, opts); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// openMoney takes what the call will cost. If it does not pass, or a rule panics, the tokens are given back.
func (c *call) openMoney(ctx context.Context, opts []core.Option) error {
	opened := false
	defer func() {
		if !opened {
			c.tokens.undo()
		}
	}()
	of, prompt, answer := &c.meter.options, c.price.of(usedTokens{prompt: c.report.Prompt}), c.price.of(usedTokens{answer: c.report.Estimated})
	err := c.money.open(ctx, of.Engine, of.CostResource, whole(prompt), whole(answer), opts)
	opened = err == nil
	return err
}

// optionsOf returns the options of a call but its attributes.
func (m *Meter) optionsOf(ctx context.Context, r *http.Request) (opts []core.Option) {
	if p, ok := core.PriorityFromContext(ctx); ok && p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	if m.options.Attributes != nil {
		opts = append(opts, m.options.Attributes(r)...)
	}
	return opts
}

// attribute reads an attribute of a call.
func attribute(c *call, key string) rule.Attribute {
	of, value := &c.report.Call, ""
	switch key {
	case "model":
		value = of.Model
	case "tenant":
		value = of.Tenant
	case "key":
		value = of.Key
	case "style":
		value = of.Style
	}
	if value == "" {
		return rule.Attribute{}
	}
	return rule.String(value)
}

// whole rounds up to a number of tokens that a call can take.
func whole(n float64) int { return int(min(math.Ceil(n), math.MaxInt32)) }

// imageTokens is what a picture counts as before the provider has reported: GPT-4o counts one of 1024 by 1024
// pixels as 765, Anthropic as its pixels by 750.
const imageTokens = 1000

// count returns how many tokens a text of so many bytes has.
func (c *call) count(length int, text string, bytesPerToken float64) int {
	if c.meter.options.Count != nil && text != "" {
		return max(0, c.meter.options.Count(c.prompt.model, text))
	}
	return whole(float64(length) / bytesPerToken)
}

// estimate returns how many tokens the answer will have.
func (c *call) estimate() int {
	n := c.meter.learnt.answer(c.prompt.model, c.caller)
	if c.prompt.most > 0 {
		n = min(n, c.prompt.most)
	}
	return min(n, math.MaxInt32/c.prompt.answers) * c.prompt.answers
}

// open takes so many tokens that are spent at once, and holds others. If the rules refuse either, or
// panic, nothing is taken.
func (a *account) open(ctx context.Context, engine *core.Engine, resource string, spent, held int, opts []core.Option) (err error) {
	spent, held = min(spent, math.MaxInt32), min(held, math.MaxInt32)
	opts = append(opts, core.Tokens(max(1, spent)))
	if a.spent, err = engine.Entry(ctx, resource, opts...); err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened {
			a.undo()
		}
	}()
	if held > 0 {
		opts[len(opts)-1] = core.Tokens(held)
		if a.held, err = engine.Entry(ctx, resource, opts...); err != nil {
			return err
		}
	}
	a.spent.MarkLongLived() // how long an answer takes says nothing of a limit of tokens
	a.held.MarkLongLived()
	opened = true
	return nil
}

// settle says what is spent so far and what is still to be held. It says whether a rule lets nothing
// more pass: what is still held was taken before.
func (a *account) settle(spent, held int) (usedUp bool) {
	left := a.spent.Settle(spent)
	if after := a.held.Settle(held); after.Known {
		left = after
	}
	return left.Overdrawn() || held == 0 && left.UsedUp()
}

// undo gives everything back, for a call that is not made.
func (a *account) undo() {
	defer a.spent.Cancel() // also if a rule panics
	a.held.Cancel()
}

// close ends it, with what is spent.
func (a *account) close(failed bool) {
	defer a.spent.Exit() // also if a rule panics
	if failed {
		a.spent.MarkFailed()
		a.held.MarkFailed()
	}
	a.held.Exit()
}

// answerTokens returns how many tokens of the answer are known. The mutex is held.
func (c *call) answerTokens() int {
	since := c.byCount - c.baseBy
	if c.meter.options.Count == nil {
		since = whole(float64(c.counted-c.baseAt) / c.answerBPT)
	}
	return c.base + max(0, since)
}

// answered notes a part of the answer.
func (c *call) answered(text string) {
	tokens := 0
	if c.meter.options.Count != nil && text != "" {
		tokens = max(0, c.meter.options.Count(c.prompt.model, text))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted += len(text)
	c.byCount += tokens
}

// reported notes the usage that the provider has reported so far.
func (c *call) reported(u *usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := u.promptTokens(); ok && (n > 0 || !c.report.Reported) { // the end of a stream may not tell it again
		c.report.Prompt, c.report.Reported = n, true
		c.cached, c.inPrompt = u.cachedTokens()
		c.written = u.writtenTokens()
	}
	if n, ok := u.answerTokens(); ok {
		c.report.Reported, c.reckoned = true, true
		c.base, c.baseAt, c.baseBy = n, c.counted, c.byCount
	}
}

// settle takes what the call has cost so far, and says whether its stream is to end.
func (c *call) settle() (stop bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	usedUp := c.take(false)
	return usedUp && c.meter.options.StopStreams
}

// take settles both accounts. At the end nothing is held any more. The mutex is held.
func (c *call) take(end bool) (usedUp bool) {
	answer := c.answerTokens()
	held := max(0, c.report.Estimated-answer)
	if end {
		held = 0
	}
	usedUp = c.tokens.settle(c.report.Prompt+answer, held)
	if c.priced {
		if c.money.settle(whole(c.cost(answer)), whole(c.price.of(usedTokens{answer: held}))) {
			usedUp = true
		}
	}
	return usedUp
}

// cost returns what the call costs with so many tokens of the answer, in millionths.
func (c *call) cost(answer int) float64 {
	prompt := max(0, c.report.Prompt-c.inPrompt-c.written)
	return c.price.of(usedTokens{prompt: prompt, cached: c.cached, written: c.written, answer: answer})
}

// finish notes that the answer came to its natural end.
func (c *call) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = true
}

// fail notes that the provider has failed in the middle of the answer.
func (c *call) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
}

// unread notes why something could not be read.
func (c *call) unread(reason string) {
	c.mu.Lock()
	if c.report.Unread == "" {
		c.report.Unread = reason
	}
	c.mu.Unlock()
	if _, before := c.meter.warned.LoadOrStore(reason, true); !before {
		c.meter.options.Logger.LogAttrs(c.request.Context(), slog.LevelWarn,
			"penstock: a call of a language model could not be read, it is charged by an estimate",
			slog.String("reason", reason), slog.String("style", c.report.Style), slog.String("resource", c.meter.options.Resource))
	}
}

// end ends the call, once. If it has failed, the rules are told so.
func (c *call) end(failed bool) {
	of, first := c.exit(failed)
	if !first {
		return
	}
	if of.learns {
		c.meter.learnt.learn(c.prompt.model, c.caller, of.promptBytes, of.report.Prompt, of.answerBytes, of.report.Answer/c.prompt.answers)
	}
	if c.meter.options.Ended != nil {
		c.meter.options.Ended(of.report)
	}
}

// ending is what is known of a call that has ended.
type ending struct {
	report                   Report
	learns                   bool // others are estimated by it
	promptBytes, answerBytes int  // 0 if they tell nothing of the tokens
}

// exit takes what the call has cost and exits its guards, also if a rule panics. It returns false if that
// was done before.
func (c *call) exit(failed bool) (of ending, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	failed = failed || c.broken
	defer c.money.close(failed)
	defer c.tokens.close(failed)
	answer := c.answerTokens()
	if c.report.Unread != "" && answer == 0 && !c.reckoned && !failed {
		answer = c.report.Estimated // nobody knows
		c.base = answer
	}
	c.take(true)
	c.report.Answer = answer
	if c.priced {
		c.report.Cost = c.cost(answer) / millionths
	}
	of = ending{report: c.report, learns: c.finished && !c.broken && answer > 0 && c.report.Unread == ""}
	if c.report.Reported && c.meter.options.Count == nil && c.prompt.unread == "" {
		if of.answerBytes = c.counted; c.prompt.images == 0 {
			of.promptBytes = c.prompt.bytes
		}
	}
	return of, true
}

// millionths are the units of the resource of costs.
const millionths = 1e6

// refuse ends a call that the provider has not served: it has cost nothing.
func (c *call) refuse(failed bool) {
	c.mu.Lock()
	c.report.Prompt, c.report.Estimated, c.cached, c.inPrompt, c.written = 0, 0, 0, 0, 0
	c.base, c.baseAt, c.baseBy = 0, c.counted, c.byCount
	c.mu.Unlock()
	c.end(failed)
}

// target returns what throttles know a call by.
func (m *Meter) target(r *http.Request, of Call) string {
	if m.options.Target != nil {
		return m.options.Target(r, of)
	}
	return r.URL.Host + " " + of.Key + " " + of.Model
}
