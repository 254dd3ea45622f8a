package main

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// call is one call and its parameters.
type call struct {
	ctx     context.Context
	name    string
	tokens  int
	group   string // of origins
	options []core.Option
	invalid bool // its options are invalid

	before     clock.Instant
	wouldBlock string // name of the shadow rule that would have refused it
}

var (
	errFailed = errors.New("the function fails")
	errPanic  = errors.New("the function panics")
)

// callKinds are the ways to make a call. Frequent ones are listed several times.
func callKinds() []func(*caller, *target, *call) {
	return []func(*caller, *target, *call){
		(*caller).exitGuard, (*caller).exitGuard, (*caller).exitGuard, (*caller).exitGuard, (*caller).exitElsewhere, (*caller).exitElsewhere,
		(*caller).callDo, (*caller).callDo, (*caller).callPanic, (*caller).callCancelled, (*caller).callWithDeadline, (*caller).viaResource, (*caller).callInvalid,
	}
}

// exitGuard exits the guard, and sometimes once more.
func (c *caller) exitGuard(t *target, k *call) {
	guard, err := t.engine.Entry(k.ctx, k.name, k.options...)
	c.recordEntry(t, k, &guard, err)
	c.markFailed(t, &guard, err)
	guard.Exit()
	if c.random.IntN(2) == 0 {
		guard.Exit()
	}
}

// viaResource enters through a resource handle.
func (c *caller) viaResource(t *target, k *call) {
	guard, err := t.engine.Resource(k.name).Entry(k.ctx, k.options...)
	c.recordEntry(t, k, &guard, err)
	guard.Exit()
}

// exitElsewhere makes another goroutine exit the guard, sometimes concurrently.
func (c *caller) exitElsewhere(t *target, k *call) {
	guard, err := t.engine.Entry(k.ctx, k.name, k.options...)
	c.recordEntry(t, k, &guard, err)
	c.markFailed(t, &guard, err)
	c.exits <- &guard
	if c.random.IntN(2) == 0 {
		guard.Exit()
	}
}

// callDo uses Do with a function that may fail.
func (c *caller) callDo(t *target, k *call) {
	fails := c.random.IntN(3) == 0
	ran := false
	err := t.engine.Do(k.ctx, k.name, func(context.Context) error {
		ran = true
		c.recordResult(t, k, nil)
		if fails {
			t.failed.Add(1)
			return errFailed
		}
		return nil
	}, k.options...)
	switch {
	case !ran:
		c.recordResult(t, k, err)
	case fails != errors.Is(err, errFailed):
		t.engine.findings.add("%s: the function's error is %v", k.name, err)
	}
}

// callPanic uses Do with a function that panics.
func (c *caller) callPanic(t *target, k *call) {
	defer func() {
		if thrown := recover(); thrown != nil && thrown != errPanic { //nolint:errorlint // this very value
			panic(thrown)
		}
	}()
	c.recordResult(t, k, t.engine.Do(k.ctx, k.name, func(context.Context) error {
		c.recordResult(t, k, nil)
		t.failed.Add(1)
		panic(errPanic)
	}, k.options...))
}

// callCancelled cancels its context at a random time, perhaps while the call waits.
func (c *caller) callCancelled(t *target, k *call) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	defer time.AfterFunc(time.Duration(c.random.IntN(5000))*time.Microsecond, cancel).Stop()
	k.ctx = ctx
	c.exitGuard(t, k)
}

// callWithDeadline has a deadline, which may have passed.
func (c *caller) callWithDeadline(t *target, k *call) {
	ctx, cancel := context.WithTimeout(k.ctx, time.Duration(c.random.IntN(20)-1)*time.Millisecond)
	defer cancel()
	k.ctx = ctx
	c.exitGuard(t, k)
}

// callInvalid makes an invalid call.
func (c *caller) callInvalid(t *target, k *call) {
	k.invalid = true
	guard, err := t.engine.Entry(k.ctx, k.name, core.Tokens(0))
	c.recordResult(t, k, err)
	guard.Exit()
}

// recordEntry records the result of Entry.
func (c *caller) recordEntry(t *target, k *call, guard *core.Guard, err error) {
	if would := guard.WouldBlock(); would != nil {
		k.wouldBlock = would.Rule
	}
	c.recordResult(t, k, err)
}

func (c *caller) recordResult(t *target, k *call, err error) { t.recordResult(k, c.clock.Now(), err) }

// markFailed marks some calls as failed.
func (c *caller) markFailed(t *target, guard *core.Guard, err error) {
	if err == nil && c.random.IntN(4) == 0 {
		guard.Fail(errFailed)
		t.failed.Add(1)
	}
}

// groupOf returns the origin of the rules that apply to a call by the origin.
func groupOf(origin string) string {
	if origin == "mobile" {
		return origin
	}
	return rule.OtherOrigins
}
