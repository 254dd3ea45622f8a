package adaptertest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock"
)

// Feature is something that a framework may lack. Tests that need it are skipped then.
type Feature string

// The features of frameworks.
const (
	// HandlerErrors: handlers return errors, or add them to their context.
	HandlerErrors Feature = "handler errors"
	// StatusErrors: the framework has errors with a status or a code, see
	// [HTTPHarness.StatusError].
	StatusErrors Feature = "errors with a status"
	// Recovery: a panic of a handler can be recovered by something further out.
	Recovery Feature = "recovery"
	// Streaming: responses can be flushed while the handler runs.
	Streaming Feature = "streaming"
	// Hijacking: a handler can take the connection over.
	Hijacking Feature = "hijacking"
	// Disconnects: the context of a request ends when its client disconnects.
	Disconnects Feature = "disconnects"
	// BodyBuffering: the adapter reads bodies before the call may wait, so that the
	// server notices clients that disconnect.
	BodyBuffering Feature = "body buffering"
	// InvalidEscapes: parameters of the query with invalid escapes are left out.
	InvalidEscapes Feature = "invalid escapes"
	// HeadOfGet: no separate route is needed for HEAD requests of a GET route.
	HeadOfGet Feature = "HEAD of a GET route"
	// NestedGuards: several guards can be put around one handler.
	NestedGuards Feature = "nested guards"
	// Unmatched: the guard sees requests that no route matches.
	Unmatched Feature = "unmatched requests"
	// Direct: requests can be served without a connection, see [HTTPHarness.Direct].
	Direct Feature = "direct calls"

	// Codes: callers learn all codes of gRPC. Those of a framework without them learn the statuses of HTTP: of Unknown
	// and DataLoss that of Internal, and of an injected fault the one that its rule says.
	Codes Feature = "codes"
	// Metadata: calls carry metadata from clients to servers.
	Metadata Feature = "metadata"
	// Deadlines: servers know the deadlines of their callers.
	Deadlines Feature = "deadlines"
	// RetryPolicies: clients retry calls by themselves, and servers can forbid it.
	RetryPolicies Feature = "retry policies"
	// RetryDelays: what refuses a call says when such a call can pass.
	RetryDelays Feature = "retry delays"
	// Throttling: guards of clients have throttles.
	Throttling Feature = "throttling"
	// RetryBudgets: guards of clients that have throttles have retry budgets, too.
	RetryBudgets Feature = "retry budgets"
	// ClientErrors: what is called answers some calls with an error that is not its fault.
	ClientErrors Feature = "errors of the client"
	// Cancellation: a call ends when its context does.
	Cancellation Feature = "cancellation"
	// WaitingDisconnects: servers notice that a client leaves before the handler has begun.
	WaitingDisconnects Feature = "disconnects of waiting calls"
)

func features() []Feature {
	return []Feature{
		HandlerErrors, StatusErrors, Recovery, Streaming, Hijacking, Disconnects, BodyBuffering, InvalidEscapes, HeadOfGet,
		NestedGuards, Unmatched, Direct, Codes, Metadata, Deadlines, RetryPolicies, RetryDelays, Throttling, RetryBudgets,
		ClientErrors, Cancellation, WaitingDisconnects,
	}
}

// eventTimeout is how long tests wait for an expected event by default.
const eventTimeout = 2 * time.Minute

// interval is how often tests look for an expected event.
const interval = time.Millisecond

// missing is what the framework lacks, with the reasons.
type missing map[Feature]string

// need skips a test that needs what the framework lacks.
func (m missing) need(t *testing.T, needed ...Feature) {
	t.Helper()
	for _, feature := range needed {
		if reason, lacks := m[feature]; lacks {
			t.Skipf("no %s: %s", feature, reason)
		}
	}
}

// check reports features that do not exist and those without a reason.
func (m missing) check(t *testing.T) {
	t.Helper()
	for feature, reason := range m {
		require.Contains(t, features(), feature, "Lacks has a feature that does not exist")
		require.NotEmpty(t, strings.TrimSpace(reason), "Lacks must say why there is no %s", feature)
	}
}

// conformanceTest is one test of a suite for a kind of harness.
type conformanceTest[H any] struct {
	name  string
	needs []Feature
	run   func(t *testing.T, h H)
}

// runAll runs the tests of a suite one after the other, and checks after each that it left
// no goroutine.
func runAll[H any](t *testing.T, h H, lacks missing, timeout time.Duration, tests []conformanceTest[H]) {
	t.Helper()
	lacks.check(t)
	penstock.Default() // which has goroutines
	for _, test := range tests {
		before := goleak.IgnoreCurrent()
		t.Run(test.name, func(t *testing.T) {
			lacks.need(t, test.needs...)
			defer requireNoLeak(t, timeout, before)
			t.Run("case", func(t *testing.T) { test.run(t, h) })
		})
	}
}

// requireNoLeak waits until no goroutine is left that was started since.
func requireNoLeak(t *testing.T, timeout time.Duration, before goleak.Option) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := goleak.Find(before)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			assert.NoError(t, err, "goroutines are left")
			return
		}
	}
}
