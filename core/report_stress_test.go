package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// Refused calls are held up between their refusal and its report, while the clock
// moves on, so that reports of different seconds come in any order.
func TestLateRefusalsAreNotLoggedAgain(t *testing.T) {
	const goroutines, calls = 64, 50
	var log bytes.Buffer
	var mu sync.Mutex
	c := clock.NewVirtual(begin)
	late := sync.NewCond(&mu)
	reports, held, active := 0, 0, goroutines
	e := core.New(core.Config{
		Clock:  c,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observer: core.Observer{Refused: func(context.Context, *core.BlockError) {
			mu.Lock()
			defer mu.Unlock()
			reports++
			if mine := reports; mine%3 == 0 && held < active/2 {
				held++
				for reports < mine+goroutines/4 && held <= active/2 { // others report first
					late.Wait()
				}
				held--
			}
			c.Advance(20 * time.Millisecond)
			late.Broadcast()
		}},
	})
	defer e.Close()
	load(t, e, flow.Rule{Resource: "r", Limit: 0})
	var calling sync.WaitGroup
	for range goroutines {
		calling.Go(func() {
			enter(e, "r", calls)
			mu.Lock()
			defer mu.Unlock()
			active--
			late.Broadcast()
		})
	}
	calling.Wait()
	seconds := int(c.Now().Time().Sub(begin)/time.Second) + 1
	lines := strings.Count(log.String(), "call refused")
	assert.LessOrEqual(t, lines, seconds)
	assert.Greater(t, lines, seconds/2)
}

// A call of the second before that is reported last does not make room for
// another line.
func TestLateRefusalLeavesTheMarkWhereItIs(t *testing.T) {
	var log bytes.Buffer
	c := clock.NewVirtual(begin)
	var between func()
	e := core.New(core.Config{
		Clock:  c,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Observer: core.Observer{Refused: func(context.Context, *core.BlockError) {
			if then := between; then != nil {
				between = nil
				then()
			}
		}},
	})
	defer e.Close()
	load(t, e, flow.Rule{Resource: "r", Limit: 0})
	enter(e, "r", 1)
	for range 10 {
		c.Advance(time.Second)
		between = func() {
			c.Advance(time.Second)
			enter(e, "r", 1)
		}
		enter(e, "r", 3)
	}
	assert.Equal(t, 11, strings.Count(log.String(), "call refused"), log.String())
}

// steppedClock is one that does not keep its promise: it can be set back.
type steppedClock struct {
	*clock.Virtual
	back time.Duration
}

func (c *steppedClock) Now() clock.Instant { return c.Virtual.Now().Add(-c.back) }

func TestRefusalsAreLoggedAlthoughTheClockWentBack(t *testing.T) {
	var log bytes.Buffer
	c := &steppedClock{Virtual: clock.NewVirtual(begin)}
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer e.Close()
	e.Impose("r", toyRule("refuse", &toy{decide: func(rule.Call) rule.Decision { return rule.Block }}))
	enter(e, "r", 2)
	c.back = 24 * time.Hour
	enter(e, "r", 2)
	c.Advance(time.Second)
	enter(e, "r", 2)
	assert.Equal(t, 3, strings.Count(log.String(), "call refused"), log.String())
}

func TestRefusalsOfTheEpochsFirstSecondAreLogged(t *testing.T) {
	var log bytes.Buffer
	e := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(0, 0)), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer e.Close()
	load(t, e, flow.Rule{Resource: "r", Limit: 0})
	enter(e, "r", 2)
	assert.Equal(t, 1, strings.Count(log.String(), "call refused"), log.String())
}
