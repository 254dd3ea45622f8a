package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/core"
)

// lineName is the resource whose queue is watched.
const lineName = "line"

// inLine is a call that waits, and its place among those of one goroutine.
type inLine struct {
	*call
	arrival *core.Arrival
	cancel  context.CancelFunc
	done    bool
}

// stand puts calls into a queue, one after the other, until ctx ends and sees that
// they leave it in that order: when one has passed, those before it have, too.
func stand(ctx context.Context, t *target, random *rand.Rand) {
	for ctx.Err() == nil {
		var line []*inLine
		for range 1 + random.IntN(12) {
			line = append(line, t.arrive())
		}
		if random.IntN(2) == 0 {
			line[random.IntN(len(line))].cancel()
		}
		for end := time.Now().Add(30 * time.Second); !t.watch(line); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.engine.wrong.add("%s: a call waits for ever", t.name)
				return
			}
		}
	}
}

func (t *target) arrive() *inLine {
	w := &inLine{call: &call{name: t.name, tokens: 1, group: groupOf(""), before: t.engine.clock.Now()}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.arrival = t.engine.Arrive(w.ctx, w.name, func() {})
	t.proceed(w)
	return w
}

func (t *target) proceed(w *inLine) {
	if w.done {
		return
	}
	if _, w.done = w.arrival.Proceed(); !w.done {
		return
	}
	guard, err := w.arrival.Result()
	t.decided(w.call, t.engine.clock.Now(), err)
	guard.Exit()
	w.cancel()
}

// watch goes on with the calls of a line, the last first, and returns true when all
// of them are decided.
func (t *target) watch(line []*inLine) (done bool) {
	last := len(line) - 1
	for ; last >= 0; last-- {
		if t.proceed(line[last]); line[last].passed() {
			break
		}
	}
	for i := last - 1; i >= 0; i-- {
		if t.proceed(line[i]); !line[i].done {
			t.engine.wrong.add("%s: call %d of a line passed before call %d", t.name, last, i)
		}
	}
	for _, w := range line {
		if !w.done {
			return false
		}
	}
	return true
}

// passed says whether the call has passed.
func (w *inLine) passed() bool {
	if !w.done {
		return false
	}
	_, err := w.arrival.Result()
	return err == nil
}
