package console

import (
	"context"
	"sync"
	"time"
)

// patience is how long a reading waits for instances. What answers later is part of the next one.
const patience = 400 * time.Millisecond

// freshness is how old an answer may be that is shown.
const freshness = 2500 * time.Millisecond

// gatherer asks all instances the same, again and again, and waits for none for long. Its methods must
// not be called concurrently.
type gatherer[T any] struct {
	mu      sync.Mutex // guards what follows
	answers map[string]*gathered[T]
}

// gathered is the answer of an instance.
type gathered[T any] struct {
	value  T
	ok     bool  // it has a value
	err    error // of the last question
	at     time.Time
	asking bool
	since  time.Time // it is asked, or does not answer
}

// answered is what is known of an instance.
type answered[T any] struct {
	instance instance
	value    T
	err      string // why the value is not known
}

// ask asks those instances that are not being asked.
func (g *gatherer[T]) ask(ctx context.Context, all []instance, question func(context.Context, instance) (T, error)) []answered[T] {
	arrived := make(chan struct{}, len(all))
	waiting := 0
	g.mu.Lock()
	g.forget(all)
	for _, i := range all {
		of := g.answers[i.name]
		if of.asking || i.problem != "" {
			continue
		}
		of.asking, of.since = true, time.Now()
		waiting++
		go func() {
			value, err := question(ctx, i)
			g.mu.Lock()
			of.asking, of.err, of.at = false, err, time.Now()
			if err == nil {
				of.value, of.ok = value, true
			}
			g.mu.Unlock()
			arrived <- struct{}{}
		}()
	}
	g.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	for ; waiting > 0; waiting-- {
		select {
		case <-arrived:
		case <-late.C:
			waiting = 1
		case <-ctx.Done():
			waiting = 1
		}
	}
	return g.results(all)
}

// forget drops the instances that are gone, and makes space for new ones.
func (g *gatherer[T]) forget(all []instance) {
	known := make(map[string]*gathered[T], len(all))
	for _, i := range all {
		if of := g.answers[i.name]; of != nil {
			known[i.name] = of
		} else {
			known[i.name] = new(gathered[T])
		}
	}
	g.answers = known
}

func (g *gatherer[T]) results(all []instance) []answered[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	results := make([]answered[T], len(all))
	for n, i := range all {
		of := g.answers[i.name]
		results[n].instance = i
		switch {
		case i.problem != "":
			results[n].err = i.problem
		case !of.asking && of.err != nil:
			results[n].err = of.err.Error()
		case of.ok && time.Since(of.at) < freshness:
			results[n].value = of.value
		default:
			results[n].err = "it has not answered yet"
		}
	}
	return results
}
