package main

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// call is one call on its way.
type call struct {
	ctx      context.Context
	name     string
	tokens   int
	group    string // of origins
	options  []core.Option
	mistaken bool // its options make no sense

	before     clock.Instant
	wouldBlock string // by which shadow rule
}

var (
	errFailed = errors.New("the function fails")
	errThrown = errors.New("the function panics")
)

// manners are the ways to make a call; the frequent ones are there more than once.
func manners() []func(*caller, *target, *call) {
	return []func(*caller, *target, *call){
		(*caller).guards, (*caller).guards, (*caller).guards, (*caller).guards, (*caller).handsOver, (*caller).handsOver,
		(*caller).does, (*caller).does, (*caller).panics, (*caller).cancels, (*caller).hurries, (*caller).resolves, (*caller).mistakes,
	}
}

// guards exits the guard, and sometimes once more.
func (c *caller) guards(t *target, k *call) {
	guard, err := t.engine.Entry(k.ctx, k.name, k.options...)
	c.entered(t, k, &guard, err)
	c.fails(t, &guard, err)
	guard.Exit()
	if c.random.IntN(2) == 0 {
		guard.Exit()
	}
}

// resolves enters by way of a resource that was looked up.
func (c *caller) resolves(t *target, k *call) {
	guard, err := t.engine.Resource(k.name).Entry(k.ctx, k.options...)
	c.entered(t, k, &guard, err)
	guard.Exit()
}

// handsOver lets another goroutine exit the guard, perhaps at the same time.
func (c *caller) handsOver(t *target, k *call) {
	guard, err := t.engine.Entry(k.ctx, k.name, k.options...)
	c.entered(t, k, &guard, err)
	c.fails(t, &guard, err)
	c.exits <- &guard
	if c.random.IntN(2) == 0 {
		guard.Exit()
	}
}

// does hands over a function, which may fail.
func (c *caller) does(t *target, k *call) {
	fails := c.random.IntN(3) == 0
	ran := false
	err := t.engine.Do(k.ctx, k.name, func(context.Context) error {
		ran = true
		c.decided(t, k, nil)
		if fails {
			t.failed.Add(1)
			return errFailed
		}
		return nil
	}, k.options...)
	switch {
	case !ran:
		c.decided(t, k, err)
	case fails != errors.Is(err, errFailed):
		t.engine.wrong.add("%s: the function's error is %v", k.name, err)
	}
}

// panics hands over a function that panics.
func (c *caller) panics(t *target, k *call) {
	defer func() {
		if thrown := recover(); thrown != nil && thrown != errThrown { //nolint:errorlint // this very value
			panic(thrown)
		}
	}()
	c.decided(t, k, t.engine.Do(k.ctx, k.name, func(context.Context) error {
		c.decided(t, k, nil)
		t.failed.Add(1)
		panic(errThrown)
	}, k.options...))
}

// cancels gives up at some moment, perhaps while it waits.
func (c *caller) cancels(t *target, k *call) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	defer time.AfterFunc(time.Duration(c.random.IntN(5000))*time.Microsecond, cancel).Stop()
	k.ctx = ctx
	c.guards(t, k)
}

// hurries has a deadline, which may have passed.
func (c *caller) hurries(t *target, k *call) {
	ctx, cancel := context.WithTimeout(k.ctx, time.Duration(c.random.IntN(20)-1)*time.Millisecond)
	defer cancel()
	k.ctx = ctx
	c.guards(t, k)
}

// mistakes makes a call that makes no sense.
func (c *caller) mistakes(t *target, k *call) {
	k.mistaken = true
	guard, err := t.engine.Entry(k.ctx, k.name, core.Tokens(0))
	c.decided(t, k, err)
	guard.Exit()
}

// entered notes what came of asking for a guard.
func (c *caller) entered(t *target, k *call, guard *core.Guard, err error) {
	if would := guard.WouldBlock(); would != nil {
		k.wouldBlock = would.Rule
	}
	c.decided(t, k, err)
}

func (c *caller) decided(t *target, k *call, err error) { t.decided(k, c.clock.Now(), err) }

// fails marks some calls as failed.
func (c *caller) fails(t *target, guard *core.Guard, err error) {
	if err == nil && c.random.IntN(4) == 0 {
		guard.Fail(errFailed)
		t.failed.Add(1)
	}
}

// groupOf returns which rules are for an origin.
func groupOf(origin string) string {
	if origin == "mobile" {
		return origin
	}
	return flow.OtherOrigins
}
