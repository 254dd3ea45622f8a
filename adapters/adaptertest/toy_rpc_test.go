package adaptertest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// toyRPC is a framework for remote calls within the process, with an adapter that makes one
// mistake, or none.
type toyRPC struct{ mistake string }

func (f toyRPC) makes(mistake string) bool { return f.mistake == mistake }

// toyStatus is an error with a code.
type toyStatus struct {
	code       rpc.Code
	text       string
	retryAfter time.Duration
	noRetry    bool
	cause      error // does not cross the wire
}

func (s *toyStatus) Error() string { return s.text }
func (s *toyStatus) Unwrap() error { return s.cause }

// statusOf returns an error as one with a code.
func statusOf(err error) *toyStatus {
	var s *toyStatus
	switch {
	case err == nil:
		return &toyStatus{}
	case errors.As(err, &s):
		return s
	case errors.Is(err, context.Canceled):
		return &toyStatus{code: rpc.Canceled, text: err.Error(), cause: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &toyStatus{code: rpc.DeadlineExceeded, text: err.Error(), cause: err}
	}
	return &toyStatus{code: rpc.Unknown, text: err.Error(), cause: err}
}

// toyCall is a call on its way. Metadata is that of the context.
type toyCall struct {
	ctx    context.Context
	method string
}

type metadataKey struct{}

func metadataOf(ctx context.Context) map[string][]string {
	md, _ := ctx.Value(metadataKey{}).(map[string][]string)
	return md
}

func (c toyCall) Context() context.Context { return c.ctx }
func (c toyCall) Method() string           { return c.method }

func (c toyCall) Metadata(key string) string {
	if values := metadataOf(c.ctx)[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// toyInvoker makes a call.
type toyInvoker func(ctx context.Context) error

func methodOf(s adaptertest.Shape) string {
	return "/toy.Service/" + strings.ReplaceAll(string(s), " ", "")
}

func (f toyRPC) harness() adaptertest.RPCHarness {
	return adaptertest.RPCHarness{
		Serve:  f.serve,
		Method: methodOf,
		Error: func(code rpc.Code, retryAfter time.Duration) error {
			return &toyStatus{code: code, text: "by the suite", retryAfter: retryAfter}
		},
		Answer: func(err error) adaptertest.RPCAnswer {
			s := statusOf(err)
			return adaptertest.RPCAnswer{Code: s.code, Text: s.text, RetryAfter: s.retryAfter}
		},
		Refuse: func(err error) error { return f.answer(err, false) },
		Direct: func(_ testing.TB, s adaptertest.RPCServer) func() {
			call := f.around(s.Server, true, methodOf(adaptertest.Unary), s.Handle)
			return func() { _ = call(context.Background()) }
		},
		PassAllocs: 20, RefuseAllocs: 20,
	}
}

func (f toyRPC) serve(_ *testing.T, s adaptertest.RPCServer) adaptertest.RPCClient {
	return func(ctx context.Context, shape adaptertest.Shape, metadata ...string) error {
		md := map[string][]string{}
		for i := 0; i+1 < len(metadata); i += 2 {
			md[metadata[i]] = append(md[metadata[i]], metadata[i+1])
		}
		send := f.wire(s, f.around(s.Server, true, methodOf(shape), s.Handle))
		return f.around(s.Client, false, methodOf(shape), send)(context.WithValue(ctx, metadataKey{}, md))
	}
}

// wire takes a call to the server: of its context, only the deadline and the metadata arrive.
func (f toyRPC) wire(s adaptertest.RPCServer, server toyInvoker) toyInvoker {
	attempt := func(ctx context.Context) error {
		remote, cancel := context.WithCancel(context.WithValue(context.Background(), metadataKey{}, metadataOf(ctx)))
		defer cancel()
		if deadline, ok := ctx.Deadline(); ok {
			late, stop := context.WithDeadline(remote, deadline)
			defer stop()
			remote = late
		}
		defer context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.Canceled) { // else the server has the same deadline
				cancel()
			}
		})()
		if s.Arrived != nil {
			s.Arrived()
		}
		answer := *statusOf(recovering(s.Recovered, remote, server))
		answer.cause = nil
		switch {
		case ctx.Err() != nil:
			return statusOf(ctx.Err())
		case answer.code == rpc.OK:
			return nil
		}
		return &answer
	}
	return func(ctx context.Context) error {
		err := attempt(ctx)
		for range 4 {
			answer := statusOf(err)
			busy := answer.code == rpc.ResourceExhausted || answer.code == rpc.Unavailable
			if !s.Retries || !busy || answer.noRetry {
				break
			}
			err = attempt(ctx)
		}
		return err
	}
}

// recovering makes a call whose panics are recovered, if recovered is set.
func recovering(recovered func(any), ctx context.Context, call toyInvoker) (err error) { //nolint:revive // the last two belong together
	if recovered != nil {
		defer func() {
			if value := recover(); value != nil {
				recovered(value)
				err = &toyStatus{code: rpc.Internal, text: "recovered"}
			}
		}()
	}
	return call(ctx)
}

// around puts guards around a call.
func (f toyRPC) around(guards []adaptertest.RPCGuard, inbound bool, method string, call toyInvoker) toyInvoker {
	for _, g := range slices.Backward(guards) {
		call = f.guard(g, inbound, method, call)
	}
	return call
}

// toyGate is a guard of the toy adapter.
type toyGate struct {
	toyRPC
	engine  *core.Engine
	o       adaptertest.RPCOptions
	inbound bool
	method  string
	clients *clientip.Resolver
}

func (f toyRPC) guard(g adaptertest.RPCGuard, inbound bool, method string, next toyInvoker) toyInvoker {
	gate := &toyGate{toyRPC: f, engine: g.Engine, o: g.Options, inbound: inbound, method: method}
	switch {
	case gate.engine == nil && f.makes("makes an engine of its own"):
		gate.engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	case gate.engine == nil:
		gate.engine = penstock.Default()
	}
	if f.makes("ignores TrustedProxies") {
		gate.o.Clients.TrustedProxies = nil
	}
	if f.makes("believes all priorities") {
		gate.o.Clients.PriorityCallers = everyone()
	}
	gate.clients = clientip.New(gate.o.Clients)
	return func(ctx context.Context) error { return gate.call(ctx, next) }
}

func (g *toyGate) call(ctx context.Context, next toyInvoker) error {
	if g.inbound || g.o.Throttle == nil || g.makes("ignores throttles") {
		return g.guarded(ctx, next)
	}
	call, err := outgoing.Begin(ctx, g.o.Throttle, g.o.RetryBudgets, "target", rule.PriorityNormal)
	if err != nil {
		return g.answer(err, !g.o.ShowRules)
	}
	err = g.guarded(ctx, next)
	s := statusOf(err)
	answer := outgoing.Answer{Result: outgoing.Accepted}
	if s.code == rpc.ResourceExhausted && !g.makes("ignores delays") {
		answer = outgoing.Answer{Result: outgoing.Rejected, RetryAfter: s.retryAfter, NoRetry: s.noRetry}
	}
	call.End(answer)
	return err
}

func (g *toyGate) guarded(ctx context.Context, next toyInvoker) error {
	resource := g.resource(ctx)
	if resource == "" {
		return next(ctx)
	}
	ctx, p := g.priority(ctx)
	entered := ctx
	if g.makes("waits without a context") {
		entered = context.WithoutCancel(ctx)
	}
	guard, err := g.engine.Entry(entered, resource, g.options(ctx, p)...)
	if g.makes("counts twice") {
		if again, err := g.engine.Entry(ctx, resource); err == nil {
			again.Exit()
		}
	}
	if err != nil && (!g.makes("serves when closed") || !errors.Is(err, core.ErrClosed)) {
		return g.refuse(ctx, err)
	}
	if g.makes("allocates") {
		_ = fmt.Sprint(strings.Split(strings.Repeat("a b ", 100), " "))
	}
	if g.inbound && !g.makes("does not yield") {
		runtime.Gosched()
	}
	return g.serve(ctx, &guard, next)
}

func (g *toyGate) resource(ctx context.Context) string {
	name := g.method
	if g.makes("ignores methods") {
		name = "rpc"
	}
	if g.o.Resource != nil && !g.makes("ignores Resource") {
		name = g.o.Resource(toyCall{ctx, g.method})
	}
	if name == "" && g.makes("guards what has no resource") {
		name = "guarded"
	}
	return name
}

// priority returns how important a call is, and its context with that.
func (g *toyGate) priority(ctx context.Context) (context.Context, rule.Priority) {
	key := strings.ToLower(g.o.PriorityKey)
	if !g.inbound {
		p, known := core.PriorityFromContext(ctx)
		if key != "" && !g.makes("passes no priority on") {
			md := map[string][]string{}
			for k, values := range metadataOf(ctx) {
				if k != key {
					md[k] = values
				}
			}
			if known {
				md[key] = []string{p.String()}
			}
			ctx = context.WithValue(ctx, metadataKey{}, md)
		}
		return ctx, p
	}
	if key != "" {
		var trust func() (rule.Priority, bool)
		if g.o.PriorityTrust != nil && !g.makes("ignores PriorityTrust") {
			trust = func() (rule.Priority, bool) { return g.o.PriorityTrust(toyCall{ctx, g.method}) }
		}
		if p, ok := g.clients.Priority(metadataOf(ctx)[key], trust, func() clientip.Address { return g.client(ctx) }); ok {
			return core.ContextWithPriority(ctx, p), p
		}
	}
	if g.o.Priority != nil {
		p := g.o.Priority(toyCall{ctx, g.method})
		return core.ContextWithPriority(ctx, p), p
	}
	return ctx, rule.PriorityNormal
}

func (g *toyGate) client(ctx context.Context) clientip.Address {
	return g.clients.Client(clientip.Parse("127.0.0.1:80"), metadataOf(ctx)[strings.ToLower(g.clients.FieldName())])
}

func (g *toyGate) attribute(ctx context.Context, key string) rule.Attribute {
	switch {
	case g.makes("offers no attributes"):
		return rule.Attribute{}
	case key == "method":
		return rule.String(g.method)
	case key == rule.KeyIP && g.inbound:
		return rule.String(g.clients.Text(g.client(ctx)))
	case key == rule.KeyIPPrefix && g.inbound:
		return rule.String(g.clients.PrefixText(g.client(ctx)))
	}
	name, ok := strings.CutPrefix(strings.ToLower(key), "metadata:")
	values := metadataOf(ctx)[name]
	switch {
	case !ok || len(values) == 0:
		return rule.Attribute{}
	case g.makes("does not bound attributes"):
		return rule.String(values[0])
	}
	return attribute.Text(values[0])
}

func (g *toyGate) options(ctx context.Context, p rule.Priority) []core.Option {
	call := toyCall{ctx, g.method}
	opts := []core.Option{core.ContextAttributes(g.attribute), core.Priority(p)}
	if g.inbound != g.makes("confuses the sides") {
		opts = append(opts, core.Inbound())
	}
	if g.o.Origin != nil && !g.makes("ignores Origin") {
		opts = append(opts, core.Origin(g.o.Origin(call)))
	}
	if g.o.Tokens != nil && !g.makes("ignores Tokens") {
		opts = append(opts, core.Tokens(g.o.Tokens(call)))
	}
	if g.o.Attributes != nil && !g.makes("ignores Attributes") {
		opts = append(opts, g.o.Attributes(call)...)
	}
	if g.makes("does not wait") {
		opts = append(opts, core.NoWait())
	}
	return opts
}

// refuse returns the error of a call that did not pass.
func (g *toyGate) refuse(ctx context.Context, err error) error {
	var block *core.BlockError
	var own error
	switch refused := errors.As(err, &block); {
	case refused && g.o.Blocked != nil && !g.makes("ignores Blocked"):
		own = g.o.Blocked(toyCall{ctx, g.method}, block)
	case !refused && g.o.EntryError != nil && !g.makes("ignores EntryError"):
		own = g.o.EntryError(toyCall{ctx, g.method}, err)
	}
	if own == nil {
		return g.answer(err, !g.o.ShowRules)
	}
	s := *statusOf(own)
	s.noRetry = !g.makes("lets clients retry")
	return &s
}

// answer returns the error for what a guard says.
func (f toyRPC) answer(err error, hide bool) error {
	var block *core.BlockError
	s := &toyStatus{text: err.Error(), cause: err, noRetry: !f.makes("lets clients retry")}
	switch {
	case errors.As(err, &block):
		s.code = rpc.Unavailable
		switch {
		case f.makes("answers all refusals alike"):
		case block.Reason == rule.RateLimited:
			s.code = rpc.ResourceExhausted
		case block.Reason == rule.Denied:
			s.code = rpc.PermissionDenied
		}
		if block.Answer.GRPC != "" && !f.makes("ignores answers of rules") {
			s.code = rpc.DataLoss
			if block.Answer.GRPC == "UNAVAILABLE" {
				s.code = rpc.Unavailable
			}
		}
		if block.RetryAfter != rule.Never && !f.makes("says no delay") {
			s.retryAfter = block.RetryAfter
		}
		if hide && !f.makes("names rules that are hidden") {
			s.text = "refused"
		}
		if f.makes("hides the cause") {
			s.cause = nil
		}
	case errors.Is(err, core.ErrClosed) && !f.makes("answers ErrClosed with Unknown"):
		s.code = rpc.Unavailable
	case errors.Is(err, core.ErrInvalid):
		s.code = rpc.Internal
	default:
		return statusOf(err)
	}
	return s
}

// serve makes a call that passed.
func (g *toyGate) serve(ctx context.Context, guard *core.Guard, next toyInvoker) (err error) {
	if g.makes("exits early") {
		guard.Exit()
		return next(ctx)
	}
	inner := ctx
	if !g.makes("hands the context of the caller on") {
		call := new(core.CallContexts).New(ctx, guard)
		if guard = call.Guard(); !g.makes("keeps the guard for itself") {
			inner = call
		} else {
			inner = guard.Context(ctx)
		}
		defer call.End()
	}
	returned, ended := false, false
	defer func() {
		if ended || !g.makes("forgets Exit after a panic") {
			guard.Exit()
		}
	}()
	defer func() {
		if !returned && g.makes("swallows panics") {
			_ = recover()
		}
		if !returned && !errors.Is(ctx.Err(), context.Canceled) {
			guard.MarkFailed()
			return
		}
		g.mark(ctx, guard, err)
		ended = true
	}()
	err = next(inner)
	returned = true
	return err
}

// mark says how a call ended.
func (g *toyGate) mark(ctx context.Context, guard *core.Guard, err error) {
	gone := ctx.Err()
	switch {
	case g.makes("never reports failures"):
		return
	case errors.Is(gone, context.Canceled) && !g.makes("fails what callers cancel"):
		guard.MarkIgnored()
		return
	case gone != nil && (!errors.Is(gone, context.DeadlineExceeded) || !g.makes("ignores deadlines")):
		guard.MarkFailed()
		return
	case gone != nil:
		guard.MarkIgnored()
		return
	case err == nil:
		return
	}
	code := statusOf(err).code
	failed := code == rpc.Unknown || code == rpc.DeadlineExceeded || code >= rpc.Unimplemented && code <= rpc.DataLoss
	refused := core.IsRefusal(err) || g.makes("ignores all refusals further down") && errors.Is(cmp.Or(err, gone), core.ErrBlocked)
	if g.makes("fails what is refused further down") {
		refused, failed = false, failed || refused
	}
	if g.makes("fails no plain error") && code == rpc.Unknown {
		failed = false
	}
	if refused {
		failed = false
	}
	if g.o.Failure != nil && !g.makes("ignores Failure") {
		failed = g.o.Failure(err)
	}
	switch {
	case failed:
		guard.MarkFailed()
	case refused:
		guard.MarkIgnored()
	case g.makes("ignores all refusals further down") && code == rpc.Unavailable:
		guard.MarkIgnored()
	}
}
