package adaptertest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
)

// CallsHarness describes what guards the calls of a client, of a store or of a service.
type CallsHarness struct {
	// Open connects a guarded client to something that answers as c.Remote says, and
	// returns what makes one call. It closes both with t.Cleanup and waits until that has
	// happened. The connection is made before any call.
	Open func(t *testing.T, c CallsClient) CallFunc

	// Resource is the name of the resource of the calls by default. If it depends on an
	// address that is known only then, set ResourceOf in place of it.
	Resource string

	// ResourceOf is asked for the name after Open was called.
	ResourceOf func() string

	// Lacks is what the client lacks, each with the reason.
	Lacks map[Feature]string

	// Timeout is how long tests wait for an expected event. Defaults to 30 s.
	Timeout time.Duration
}

// CallFunc makes one call and returns how it ended. It is safe for concurrent use, and for
// as many calls at once as there are.
type CallFunc func(ctx context.Context) error

// CallsClient is a client to connect.
type CallsClient struct {
	// Guards are around the client, the outermost first. There are several only for tests
	// that need [NestedGuards].
	Guards []CallsGuard

	// Remote is asked what to do with each call that arrives at the other end. It is called
	// by any goroutine, and may block.
	Remote func() Reply
}

// CallsGuard is a guard of the adapter under test.
type CallsGuard struct {
	Engine  *core.Engine // nil for the default engine
	Options CallsOptions
}

// CallsOptions are the options of a guard. The zero value of each stands for the adapter's
// default.
type CallsOptions struct {
	Resource   func(context.Context) string
	Tokens     func(context.Context) int
	Attributes func(context.Context) []core.Option

	// Failure gets the error that the call of the client returns.
	Failure func(err error) bool

	Throttle     *outgoing.Throttle
	RetryBudgets *outgoing.RetryBudgets
}

// Reply is what the other end does with a call.
type Reply int

const (
	// Answered says that the call succeeds.
	Answered Reply = iota
	// NotFoundReply says that the call ends with an error that is not the fault of what is called,
	// such as a missing row or key. Not for those that lack [ClientErrors].
	NotFoundReply
	// Broken says that the call fails: with an error that is the fault of what is called, or
	// because the connection breaks off.
	Broken
	// Rejected says that it is refused because what is called is overloaded. Not for those
	// that lack [Throttling].
	Rejected
	// Busy says that it is refused so, and may be tried again in 2 s. Not for those that lack
	// [Throttling] or [RetryDelays].
	Busy
	// Silent says that there is no answer before the context of the call, or the client, ends.
	Silent
)

// Calls runs the conformance suite for guards of the calls of clients.
func Calls(t *testing.T, h CallsHarness) {
	t.Helper()
	h.Timeout = cmp.Or(h.Timeout, eventTimeout)
	if h.ResourceOf == nil {
		h.ResourceOf = func() string { return h.Resource }
	}
	runAll(t, &h, h.Lacks, h.Timeout, callsTests())
}

type callsTest = conformanceTest[*CallsHarness]

// callsTests returns all tests of the suite.
func callsTests() []callsTest {
	return slices.Concat(callsRefusalTests(), callsOutcomeTests(), callsWaitTests())
}

// open connects a client with one guard.
func (h *CallsHarness) open(t *testing.T, engine *core.Engine, options CallsOptions, remote func() Reply) CallFunc {
	t.Helper()
	return h.connect(t, remote, CallsGuard{engine, options})
}

// connect connects a client with guards.
func (h *CallsHarness) connect(t *testing.T, remote func() Reply, guards ...CallsGuard) CallFunc {
	t.Helper()
	if len(guards) > 1 {
		missing(h.Lacks).need(t, NestedGuards)
	}
	var engines []*core.Engine
	for _, guard := range guards {
		engines = append(engines, guard.Engine)
	}
	t.Cleanup(func() { requireNoneUnderWay(t, h.Timeout, engines) }) // after the client is closed
	call := h.Open(t, CallsClient{Guards: guards, Remote: remote})
	t.Cleanup(func() { releaseAfterFailure(t, engines) })
	return func(ctx context.Context) error {
		ctx, stop := within(ctx, h.Timeout)
		defer stop()
		return call(ctx)
	}
}

// answered answers every call.
func answered() Reply { return Answered }
