package adaptertest

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// onePlace lets one call of a resource, of a user and of an origin be under way, and needs to know both.
func onePlace(resource string) rules.Set {
	set := rules.Set{Isolation: []isolation.Rule{{Name: "one", Resource: resource, Limit: 1}}}
	for _, key := range []string{"user", rule.KeyOrigin} {
		set.HotParam = append(set.HotParam, hotparam.Rule{
			Name: key, Resource: resource, Param: rule.StringsOf(key), Concurrency: 1, Missing: rule.MissingShare,
		})
	}
	return set
}

// failsOnce fails in its first call only.
type failsOnce struct {
	fail   func()
	failed atomic.Bool
}

func (f *failsOnce) call() {
	if f.failed.CompareAndSwap(false, true) {
		f.fail()
	}
}

// requireHoldsNothing makes a call, in which the program's own code fails, and another one, which has to find
// all places free.
func (f *failsOnce) requireHoldsNothing(
	t *testing.T, timeout time.Duration, engine *core.Engine, call func() error,
) {
	t.Helper()
	makeOne := func() (err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			err = call()
		}()
		<-done
		return err
	}
	_ = makeOne()
	require.True(t, f.failed.Load(), "the option was not asked")
	requireNoneUnderWay(t, timeout, []*core.Engine{engine})
	require.NoError(t, makeOne(), "the next call")
	requireNoneUnderWay(t, timeout, []*core.Engine{engine})
}

// httpOptionsThatPanic are options of a guard that each call its function.
func httpOptionsThatPanic(resource string, call func()) map[string]Options {
	return map[string]Options{
		"Resource":   {Resource: func(Request) string { call(); return resource }},
		"Origin":     {Origin: func(Request) string { call(); return "a" }},
		"Tokens":     {Tokens: func(Request) int { call(); return 1 }},
		"Attributes": {Attributes: func(Request) []core.Option { call(); return []core.Option{core.String("user", "a")} }},
		"Priority":   {Priority: func(Request) rule.Priority { call(); return rule.PriorityNormal }},
		"Failure":    {Failure: func(int, error) bool { call(); return false }},
	}
}

func optionsThatPanic(t *testing.T, h *HTTPHarness) {
	for name := range httpOptionsThatPanic("", nil) {
		t.Run(name, func(t *testing.T) {
			f := failsOnce{fail: func() { panic("no opinion") }}
			engine, _ := NewEngine(t, onePlace(h.orders()))
			c := h.serve(t, Server{
				Guards:    []Guard{{engine, httpOptionsThatPanic(h.orders(), f.call)[name]}},
				Routes:    ordersRoutes(ok),
				Recovered: func(any) {},
			})
			f.requireHoldsNothing(t, h.Timeout, engine, func() error {
				if status := c.get("/orders/7").status; status != http.StatusOK {
					return errLost
				}
				return nil
			})
		})
	}
}

func rpcOptionsThatPanic(resource string, call func()) map[string]RPCOptions {
	return map[string]RPCOptions{
		"Resource":   {Resource: func(RPCCall) string { call(); return resource }},
		"Origin":     {Origin: func(RPCCall) string { call(); return "a" }},
		"Tokens":     {Tokens: func(RPCCall) int { call(); return 1 }},
		"Attributes": {Attributes: func(RPCCall) []core.Option { call(); return []core.Option{core.String("user", "a")} }},
		"Failure":    {Failure: func(error) bool { call(); return false }},
	}
}

func rpcOptionsPanic(t *testing.T, c rpcCase) {
	for name := range rpcOptionsThatPanic("", nil) {
		for way, fail := range failures() {
			if c.at == AtServer && way != "panic" || c.at == AtClient && name == "Origin" {
				continue // nobody recovers the end of a goroutine of a server, and clients have no origin
			}
			t.Run(name+", "+way, func(t *testing.T) {
				f := failsOnce{fail: fail}
				engine, _ := NewEngine(t, onePlace(c.resource()))
				handle := func(context.Context) error {
					if name == "Failure" && !f.failed.Load() { // it is asked about errors
						return c.Error(rpc.Internal, 0)
					}
					return nil
				}
				call := c.start(t, RPCServer{Handle: handle, Recovered: c.ifRecovered()},
					RPCGuard{engine, rpcOptionsThatPanic(c.resource(), f.call)[name]})
				f.requireHoldsNothing(t, c.Timeout, engine, func() error { return call(t.Context()) })
			})
		}
	}
}

func callsOptionsThatPanic(resource string, call func()) map[string]CallsOptions {
	return map[string]CallsOptions{
		"Resource":   {Resource: func(context.Context) string { call(); return resource }},
		"Tokens":     {Tokens: func(context.Context) int { call(); return 1 }},
		"Attributes": {Attributes: func(context.Context) []core.Option { call(); return []core.Option{core.String("user", "a")} }},
		"Failure":    {Failure: func(error) bool { call(); return false }},
	}
}

func callsOptionsPanic(t *testing.T, h *CallsHarness) {
	for name := range callsOptionsThatPanic("", nil) {
		for way, fail := range failures() {
			t.Run(name+", "+way, func(t *testing.T) {
				f := failsOnce{fail: fail}
				engine, _ := NewEngine(t, rules.Set{})
				call := h.open(t, engine, callsOptionsThatPanic("guarded", f.call)[name], func() Reply {
					if name == "Failure" && !f.failed.Load() { // it is asked about errors
						return Broken
					}
					return Answered
				})
				resource := h.ResourceOf()
				if name == "Resource" {
					resource = "guarded"
				}
				require.NoError(t, engine.Load(onePlace(resource)))
				f.requireHoldsNothing(t, h.Timeout, engine, func() error { return call(t.Context()) })
			})
		}
	}
}
