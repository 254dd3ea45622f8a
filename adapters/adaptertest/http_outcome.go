package adaptertest

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func httpOutcomeTests() []httpTest {
	return []httpTest{
		{"statuses from 500 up are failures", nil, statusesAreFailures},
		{"errors of handlers are failures", []Feature{HandlerErrors}, handlerErrorsAreFailures},
		{"errors with a status count by the status", []Feature{HandlerErrors, StatusErrors}, statusErrorsCountByStatus},
		{"a panic is a failure and is passed on", []Feature{Recovery}, panicIsPassedOn},
		{"the server goes on after panics", []Feature{Recovery}, serverGoesOnAfterPanics},
		{"refusals further down are ignored", nil, refusalsFurtherDown},
		{"refusals as errors of handlers are ignored", []Feature{HandlerErrors}, refusalsAsErrors},
		{"faults injected further down are failures", nil, faultsFurtherDown},
		{"refusals of an inner guard are ignored", []Feature{NestedGuards}, refusalsOfAnInnerGuard},
		{"requests that clients leave are ignored", []Feature{Disconnects}, requestsThatClientsLeave},
		{"failures before clients leave count", []Feature{Disconnects, Streaming}, failuresBeforeClientsLeave},
		{"Failure decides what is a failure", nil, failureOptionDecides},
		{"options that panic hold nothing", []Feature{Recovery}, optionsThatPanic},
		{"a breaker is opened by failures only", []Feature{Disconnects}, breakerIsOpenedByFailures},
		{"rules count calls by their end", nil, func(t *testing.T, h *HTTPHarness) {
			callsAreCountedByTheirEnd(t, h.Timeout, h.counted)
		}},
	}
}

// outcome serves one request and checks how rules see its end.
func (h *HTTPHarness) outcome(t *testing.T, want Outcome, options Options, handle func(Exchange) error) answer {
	t.Helper()
	p := new(Probe)
	answer := h.serveOrders(t, p.NewEngine(t), options, handle).get("/orders/7")
	p.requireOutcome(t, h.Timeout, want)
	return answer
}

func statusesAreFailures(t *testing.T, h *HTTPHarness) {
	for status, want := range map[int]Outcome{
		200: Succeeded, 202: Succeeded, 204: Succeeded, 302: Succeeded, 400: Succeeded, 404: Succeeded, 429: Succeeded,
		499: Succeeded, 500: Failed, 502: Failed, 503: Failed, 599: Failed,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			answered := h.outcome(t, want, Options{}, func(x Exchange) error {
				x.SetHeader("Location", "/elsewhere")
				return x.Respond(status, "")
			})
			assert.Equal(t, status, answered.status)
		})
	}
	t.Run("nothing written", func(t *testing.T) {
		h.outcome(t, Succeeded, Options{}, func(Exchange) error { return nil })
	})
}

func handlerErrorsAreFailures(t *testing.T, h *HTTPHarness) {
	for name, err := range map[string]error{
		"plain":         errors.New("lost"),
		"wrapped":       fmt.Errorf("query: %w", errors.New("lost")),
		"closed engine": core.ErrClosed,
	} {
		t.Run(name, func(t *testing.T) { h.outcome(t, Failed, Options{}, func(Exchange) error { return err }) })
	}
}

func statusErrorsCountByStatus(t *testing.T, h *HTTPHarness) {
	for status, want := range map[int]Outcome{400: Succeeded, 404: Succeeded, 429: Succeeded, 500: Failed, 503: Failed} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			answered := h.outcome(t, want, Options{}, func(Exchange) error { return h.StatusError(status) })
			assert.Equal(t, status, answered.status)
		})
	}
}

func panicIsPassedOn(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	recovered := make(chan any, 1)
	c := h.serve(t, Server{
		Guards:    []Guard{{Engine: p.NewEngine(t)}},
		Routes:    ordersRoutes(func(Exchange) error { panic("boom") }),
		Recovered: func(value any) { recovered <- value },
	})
	assert.Equal(t, http.StatusInternalServerError, c.get("/orders/7").status)
	select {
	case value := <-recovered:
		assert.Equal(t, "boom", fmt.Sprint(value))
	default:
		t.Error("nobody has recovered the panic: the guard must pass it on")
	}
	p.requireOutcome(t, h.Timeout, Failed)
}

func serverGoesOnAfterPanics(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	engine := p.NewEngine(t)
	before := true
	c := h.serve(t, Server{
		Guards: []Guard{{Engine: engine}},
		Routes: ordersRoutes(func(x Exchange) error {
			if before {
				panic("boom")
			}
			return ok(x)
		}),
		Recovered: func(any) {},
	})
	for range 3 {
		c.get("/orders/7")
	}
	requireEnded(t, h.Timeout, engine, h.orders(), 3)
	before = false
	assert.Equal(t, http.StatusOK, c.get("/orders/7").status, "the server goes on")
	requireEnded(t, h.Timeout, engine, h.orders(), 4)
	assert.Equal(t, []Outcome{Failed, Failed, Failed, Succeeded}, p.Outcomes())
}

// refusal is the refusal of a call that a handler has made.
func refusal() error {
	return fmt.Errorf("query: %w", &core.BlockError{Resource: "db", Kind: "isolation", Rule: "pool", Reason: rule.Overloaded})
}

func refusalsFurtherDown(t *testing.T, h *HTTPHarness) {
	h.outcome(t, Ignored, Options{}, func(x Exchange) error { return x.Refuse(refusal()) })
}

func refusalsAsErrors(t *testing.T, h *HTTPHarness) {
	h.outcome(t, Ignored, Options{}, func(Exchange) error { return refusal() })
}

func faultsFurtherDown(t *testing.T, h *HTTPHarness) {
	faulty := inject(t, "pay", fault.Abort{HTTP: 503})
	h.outcome(t, Failed, Options{}, func(x Exchange) error {
		_, err := faulty.Entry(x.Context(), "pay")
		return x.Refuse(err)
	})
}

func refusalsOfAnInnerGuard(t *testing.T, h *HTTPHarness) {
	for name, options := range map[string]Options{
		"default answer": {},
		"answer of its own": {Blocked: func(x Exchange, _ *core.BlockError) error {
			return x.Respond(http.StatusServiceUnavailable, "later")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			outer, inner := new(Probe), &Probe{Reason: rule.Overloaded, RefuseAfter: time.Second}
			c := h.serve(t, Server{
				Guards: []Guard{{Engine: outer.NewEngine(t)}, {inner.NewEngine(t), options}},
				Routes: ordersRoutes(ok),
			})
			assert.Equal(t, http.StatusServiceUnavailable, c.get("/orders/7").status)
			outer.requireOutcome(t, h.Timeout, Ignored)
		})
	}
}

// afterLeaving serves one request whose client disconnects when the handler runs; handle
// answers it then.
func (h *HTTPHarness) afterLeaving(t *testing.T, engine *core.Engine, handle func(Exchange) error) {
	t.Helper()
	here := make(chan struct{})
	var once sync.Once
	h.serve(t, Server{
		Guards: []Guard{{Engine: engine}},
		Routes: ordersRoutes(func(x Exchange) error {
			once.Do(func() { close(here) })
			hold(t, x.Context().Done())
			return handle(x)
		}),
		Recovered: h.ifRecovered(func(any) {}),
	}).leave("/orders/7", here)
}

// ifRecovered returns the function if the framework can recover panics.
func (h *HTTPHarness) ifRecovered(recovered func(any)) func(any) {
	if h.Lacks[Recovery] != "" {
		return nil
	}
	return recovered
}

func requestsThatClientsLeave(t *testing.T, h *HTTPHarness) {
	for name, handle := range map[string]func(Exchange) error{
		"status 500": respond(http.StatusInternalServerError),
		"status 200": ok,
		"panic": func(x Exchange) error {
			if h.Lacks[Recovery] != "" {
				return ok(x)
			}
			panic("no row: context canceled")
		},
		"error": func(x Exchange) error {
			if h.Lacks[HandlerErrors] != "" {
				return ok(x)
			}
			return x.Context().Err()
		},
		"other error": func(x Exchange) error {
			if h.Lacks[HandlerErrors] != "" {
				return ok(x)
			}
			return errors.New("lost")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := new(Probe)
			h.afterLeaving(t, p.NewEngine(t), handle)
			p.requireOutcome(t, h.Timeout, Ignored)
		})
	}
}

func failuresBeforeClientsLeave(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	answered := make(chan struct{})
	h.serveOrders(t, p.NewEngine(t), Options{}, func(x Exchange) error {
		return x.Stream(http.StatusInternalServerError, func(w StreamWriter) error {
			_, _ = w.WriteString("lost")
			_ = w.Flush()
			close(answered)
			hold(t, x.Context().Done())
			return nil
		})
	}).leave("/orders/7", answered)
	p.requireOutcome(t, h.Timeout, Failed)
}

func failureOptionDecides(t *testing.T, h *HTTPHarness) {
	var seen []int
	var refused []bool
	options := Options{Failure: func(status int, err error) bool {
		seen = append(seen, status)
		refused = append(refused, errors.Is(err, core.ErrBlocked))
		return status == http.StatusNotFound || errors.Is(err, core.ErrBlocked)
	}}
	h.outcome(t, Succeeded, options, respond(http.StatusInternalServerError))
	h.outcome(t, Failed, options, respond(http.StatusNotFound))
	h.outcome(t, Failed, options, func(x Exchange) error { return x.Refuse(refusal()) })
	require.Len(t, seen, 3)
	assert.Equal(t, []int{http.StatusInternalServerError, http.StatusNotFound}, seen[:2])
	assert.Equal(t, []bool{false, false, true}, refused)
}

func breakerIsOpenedByFailures(t *testing.T, h *HTTPHarness) {
	engine, virtual := NewEngine(t, rules.Set{Breaker: []breaker.Rule{{
		Name: "b", Resource: h.orders(), Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 1,
	}}})
	state := func() string { return engine.Explain(h.orders())[0].State }
	ended := 0
	end := func() {
		ended++
		requireEnded(t, h.Timeout, engine, h.orders(), ended)
	}
	inconclusive := func() {
		h.afterLeaving(t, engine, respond(http.StatusInternalServerError))
		end()
		h.serveOrders(t, engine, Options{}, func(x Exchange) error { return x.Refuse(refusal()) }).get("/orders/7")
		end()
	}
	inconclusive()
	require.Equal(t, breaker.Closed, state())
	h.serveOrders(t, engine, Options{}, respond(http.StatusInternalServerError)).get("/orders/7")
	end()
	require.Equal(t, breaker.Open, state())
	c := h.serveOrders(t, engine, Options{}, ok)
	refused := c.get("/orders/7")
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	virtual.Advance(time.Second)
	inconclusive() // probes
	require.Equal(t, breaker.HalfOpen, state())
	c.get("/orders/7")
	end()
	assert.Equal(t, breaker.Closed, state())
}

// counted serves calls whose end is counted.
func (h *HTTPHarness) counted(t *testing.T, engine *core.Engine, calls *countedCalls) (call func(), resource string) {
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		if calls.serve() {
			return x.Respond(http.StatusInternalServerError, "")
		}
		return ok(x)
	})
	return func() { c.get("/orders/7") }, h.orders()
}
