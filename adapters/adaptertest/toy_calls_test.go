package adaptertest_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// toyCalls is a client of something within the process, with an adapter that makes one
// mistake, or none.
type toyCalls struct{ mistake string }

func (f toyCalls) makes(mistake string) bool { return f.mistake == mistake }

var (
	errNotFound = errors.New("not found")
	errBroken   = errors.New("broken")
	errRejected = errors.New("rejected")
	errBusy     = errors.New("busy")
)

func (f toyCalls) harness() adaptertest.CallsHarness {
	return adaptertest.CallsHarness{Resource: "toy", Open: func(_ *testing.T, c adaptertest.CallsClient) adaptertest.CallFunc {
		call := func(ctx context.Context) error {
			switch c.Remote() {
			case adaptertest.NotFoundReply:
				return errNotFound
			case adaptertest.Broken:
				return errBroken
			case adaptertest.Rejected:
				return errRejected
			case adaptertest.Busy:
				return errBusy
			case adaptertest.Silent:
				<-ctx.Done()
				return ctx.Err()
			}
			return ctx.Err()
		}
		for _, g := range slices.Backward(c.Guards) {
			call = f.guard(g, call)
		}
		return call
	}}
}

func (f toyCalls) guard(g adaptertest.CallsGuard, next adaptertest.CallFunc) adaptertest.CallFunc {
	switch {
	case g.Engine == nil && f.makes("makes an engine of its own"):
		g.Engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	case g.Engine == nil:
		g.Engine = penstock.Default()
	}
	o := g.Options
	return func(ctx context.Context) error {
		if o.Throttle == nil || f.makes("ignores throttles") {
			return f.guarded(ctx, &g, next)
		}
		call, err := outgoing.Begin(ctx, o.Throttle, o.RetryBudgets, "target", rule.PriorityNormal)
		if err != nil {
			return err
		}
		err = f.guarded(ctx, &g, next)
		answer := outgoing.Answer{Result: outgoing.Accepted}
		switch {
		case errors.Is(err, errRejected) && !f.makes("ignores rejections"):
			answer.Result = outgoing.Rejected
		case errors.Is(err, errBusy) && !f.makes("ignores delays"):
			answer = outgoing.Answer{Result: outgoing.Rejected, RetryAfter: 2 * time.Second}
		}
		call.End(answer)
		return err
	}
}

func (f toyCalls) guarded(ctx context.Context, g *adaptertest.CallsGuard, next adaptertest.CallFunc) error {
	o := &g.Options
	resource := "toy"
	if f.makes("names calls otherwise") {
		resource = "other"
	}
	if o.Resource != nil && !f.makes("ignores Resource") {
		resource = o.Resource(ctx)
	}
	if resource == "" {
		return next(ctx)
	}
	entered := ctx
	if f.makes("waits without a context") {
		entered = context.WithoutCancel(ctx)
	}
	guard, err := g.Engine.Entry(entered, resource, f.options(ctx, o)...)
	if f.makes("counts twice") {
		if again, err := g.Engine.Entry(ctx, resource); err == nil {
			again.Exit()
		}
	}
	switch {
	case err != nil && f.makes("sends what is refused"):
		_ = next(ctx)
		return err
	case err != nil && f.makes("hides the cause"):
		return errors.New("refused")
	case errors.Is(err, core.ErrClosed) && f.makes("serves when closed"):
		return next(ctx)
	case err != nil:
		return err
	}
	if f.makes("exits early") {
		guard.Exit()
		return next(ctx)
	}
	ended := false
	defer func() {
		if ended || !f.makes("forgets Exit after a panic") {
			guard.Exit()
		}
	}()
	err = next(ctx)
	f.mark(ctx, &guard, o, err)
	ended = true
	return err
}

func (f toyCalls) options(ctx context.Context, o *adaptertest.CallsOptions) (opts []core.Option) {
	if p, known := core.PriorityFromContext(ctx); known && !f.makes("ignores priorities") {
		opts = append(opts, core.Priority(p))
	}
	if o.Tokens != nil && !f.makes("ignores Tokens") {
		opts = append(opts, core.Tokens(o.Tokens(ctx)))
	}
	if o.Attributes != nil && !f.makes("ignores Attributes") {
		opts = append(opts, o.Attributes(ctx)...)
	}
	if f.makes("is inbound") {
		opts = append(opts, core.Inbound())
	}
	if f.makes("does not wait") {
		opts = append(opts, core.NoWait())
	}
	return opts
}

func (f toyCalls) mark(ctx context.Context, guard *core.Guard, o *adaptertest.CallsOptions, err error) {
	refused := core.IsRefusal(err) && !f.makes("fails what is refused further down")
	canceled := errors.Is(ctx.Err(), context.Canceled) && !f.makes("fails what callers cancel")
	late := errors.Is(ctx.Err(), context.DeadlineExceeded) && f.makes("ignores deadlines")
	failed := err != nil && !errors.Is(err, errNotFound) && !errors.Is(err, errBusy) && !canceled && !refused && !late
	switch {
	case f.makes("never reports failures"):
		failed = false
	case f.makes("takes every error for a failure"):
		failed = err != nil
	case o.Failure != nil && !f.makes("ignores Failure"):
		failed = o.Failure(err)
	}
	switch {
	case failed:
		guard.MarkFailed()
	case canceled, refused:
		guard.MarkIgnored()
	}
}
