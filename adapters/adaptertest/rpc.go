package adaptertest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// RPCHarness describes a framework for remote calls, and its adapter.
type RPCHarness struct {
	// Serve starts a server on a port of 127.0.0.1 that has a method of each shape, connects
	// a client to it, and returns what makes calls. It stops both with t.Cleanup, waits
	// until that has happened, and writes no log.
	Serve func(t *testing.T, s RPCServer) RPCClient

	// Shapes are the shapes of methods that can be guarded. Defaults to [Unary].
	Shapes []Shape

	// Sides are where guards can be. Defaults to both.
	Sides []Side

	// Method is the name of the method of a shape, which is the name of its resource by
	// default.
	Method func(Shape) string

	// Error returns an error of the framework with a code, for handlers. If retryAfter is
	// not 0, it says when such a call can pass; frameworks that lack [RetryDelays] do not.
	Error func(code rpc.Code, retryAfter time.Duration) error

	// Answer returns what a caller learns from an error.
	Answer func(err error) RPCAnswer

	// Refuse returns the error by which a handler passes the refusal of another call on,
	// in the way that the adapter documents. Defaults to the error itself.
	Refuse func(err error) error

	// IsFailure returns whether calls that end with a code count as failed by default.
	// Defaults to Unknown, DeadlineExceeded, Unimplemented, Internal, Unavailable and
	// DataLoss.
	IsFailure func(rpc.Code) bool

	// Direct returns what makes one unary call at the guards of a server without a
	// connection, as often as wanted and on any goroutine. It must be set unless the
	// framework lacks [Direct].
	Direct func(tb testing.TB, s RPCServer) (call func())

	// PassAllocs and RefuseAllocs are how many allocations a direct call that passes, or
	// that is refused, may have more than one that passes without a guard.
	PassAllocs, RefuseAllocs int

	// Lacks is what the framework lacks, each with the reason.
	Lacks map[Feature]string

	// Timeout is how long tests wait for an expected event. Defaults to 30 s.
	Timeout time.Duration
}

// Shape is a shape of methods.
type Shape string

// The shapes.
const (
	Unary        Shape = "unary"
	ServerStream Shape = "server stream"
	ClientStream Shape = "client stream"
	Bidi         Shape = "bidirectional stream"
)

// Side is where a guard is.
type Side string

// The sides.
const (
	AtServer Side = "server"
	AtClient Side = "client"
)

// RPCAnswer is what the caller of a refused call learns.
type RPCAnswer struct {
	Code       rpc.Code
	Text       string        // all texts: the message and those of all details
	RetryAfter time.Duration // 0 if it is not said
}

// RPCServer is a server to start, and its client.
type RPCServer struct {
	// Server and Client are the guards of each side, the outermost first.
	Server, Client []RPCGuard

	// Handle is what every method calls when it has received and sent all messages
	// but the last reply; the method returns the error. Streaming methods send two
	// messages to each side before.
	Handle func(ctx context.Context) error

	// Arrived, if it is set, is called with each call that comes to the server, outside of the guards.
	Arrived func()

	// Recovered, if it is set, recovers panics at the server outside of the guards: it is called with the
	// value of the panic, and the caller gets the code Internal. If it is not set, no
	// handler panics.
	Recovered func(value any)

	// Retries makes clients retry calls up to four times, at once, that end with
	// ResourceExhausted or Unavailable. Only for frameworks that do not lack
	// [RetryPolicies].
	Retries bool
}

// RPCGuard is a guard of the adapter under test.
type RPCGuard struct {
	Engine  *core.Engine // nil for the default engine
	Options RPCOptions
}

// RPCClient makes a call of the method of a shape from beginning to end, with metadata, keys and
// values by turns, and returns how it ended. It is safe for concurrent use.
type RPCClient func(ctx context.Context, shape Shape, metadata ...string) error

// RPCCall is a call as options see it.
type RPCCall interface {
	Context() context.Context
	// Method is "" where the option does not get it.
	Method() string
	// Metadata is the first value of the key, of what comes in at a server and of what
	// goes out at a client, "" if there is none.
	Metadata(key string) string
}

// RPCOptions are the options of a guard. The zero value of each stands for the adapter's
// default.
type RPCOptions struct {
	Resource      func(RPCCall) string
	Origin        func(RPCCall) string
	Tokens        func(RPCCall) int
	Attributes    func(RPCCall) []core.Option
	Priority      func(RPCCall) rule.Priority // servers
	PriorityKey   string
	PriorityTrust func(RPCCall) (most rule.Priority, trusted bool)
	Clients       clientip.Options
	Blocked       func(RPCCall, *core.BlockError) error
	EntryError    func(RPCCall, error) error
	Failure       func(err error) bool
	ShowRules     bool
	Throttle      *outgoing.Throttle     // clients
	RetryBudgets  *outgoing.RetryBudgets // clients
}

// RPC runs the conformance suite for a framework for remote calls.
func RPC(t *testing.T, h RPCHarness) {
	t.Helper()
	h.fill()
	runAll(t, &h, h.Lacks, h.Timeout, rpcTests())
}

func (h *RPCHarness) fill() {
	h.Timeout = cmp.Or(h.Timeout, eventTimeout)
	if len(h.Shapes) == 0 {
		h.Shapes = []Shape{Unary}
	}
	if len(h.Sides) == 0 {
		h.Sides = []Side{AtServer, AtClient}
	}
	if h.Refuse == nil {
		h.Refuse = func(err error) error { return err }
	}
	if h.IsFailure == nil {
		h.IsFailure = func(code rpc.Code) bool {
			return slices.Contains([]rpc.Code{rpc.Unknown, rpc.DeadlineExceeded, rpc.Unimplemented, rpc.Internal, rpc.Unavailable, rpc.DataLoss}, code)
		}
	}
}

type rpcTest = conformanceTest[*RPCHarness]

// rpcTests returns all tests of the suite.
func rpcTests() []rpcTest {
	return slices.Concat(
		rpcRefusalTests(), rpcOptionTests(), rpcPriorityTests(), rpcOutcomeTests(), rpcWaitTests(), rpcContextTests(), rpcClientTests(),
		rpcDirectTests(),
	)
}

// rpcCase is a test for one side and one shape.
type rpcCase struct {
	*RPCHarness
	at    Side
	shape Shape
}

// each makes a test of one for each side, or for those given, and each shape.
func each(run func(t *testing.T, c rpcCase), sides ...Side) func(t *testing.T, h *RPCHarness) {
	return func(t *testing.T, h *RPCHarness) {
		none := true
		for _, side := range h.Sides {
			if len(sides) > 0 && !slices.Contains(sides, side) {
				continue
			}
			for _, shape := range h.Shapes {
				none = false
				t.Run(string(side)+", "+string(shape), func(t *testing.T) { run(t, rpcCase{h, side, shape}) })
			}
		}
		if none {
			t.Skip("there are no guards at that side")
		}
	}
}

// resource is the name of the resource by default.
func (c rpcCase) resource() string { return c.Method(c.shape) }

// rpcCaller makes calls of the shape of the case.
type rpcCaller func(ctx context.Context, metadata ...string) error

// serve starts a server with one guard, at the side of the case.
func (c rpcCase) serve(t *testing.T, engine *core.Engine, options RPCOptions, handle func(context.Context) error) rpcCaller {
	t.Helper()
	return c.start(t, RPCServer{Handle: handle}, RPCGuard{engine, options})
}

// start starts a server with guards at the side of the case.
func (c rpcCase) start(t *testing.T, s RPCServer, guards ...RPCGuard) rpcCaller {
	t.Helper()
	lacks := missing(c.Lacks)
	if len(guards) > 1 {
		lacks.need(t, NestedGuards)
	}
	if c.at == AtServer {
		s.Server = guards
	} else {
		s.Client = guards
	}
	var engines []*core.Engine
	for _, guard := range guards {
		engines = append(engines, guard.Engine)
	}
	t.Cleanup(func() { requireNoneUnderWay(t, c.Timeout, engines) }) // after the server has stopped
	client := c.Serve(t, s)
	t.Cleanup(func() { releaseAfterFailure(t, engines) })
	return func(ctx context.Context, metadata ...string) error {
		ctx, stop := within(ctx, c.Timeout)
		defer stop()
		return client(ctx, c.shape, metadata...)
	}
}

func (c rpcCase) answer(err error) RPCAnswer {
	if err == nil {
		return RPCAnswer{}
	}
	return c.Answer(err)
}

// received returns the code that callers learn if a call ends with a code.
func (c rpcCase) received(code rpc.Code) rpc.Code {
	if c.Lacks[Codes] != "" && (code == rpc.Unknown || code == rpc.DataLoss) {
		return rpc.Internal
	}
	return code
}

// succeed is a handler of calls that end well.
func succeed(context.Context) error { return nil }
