package sleep

import "sync"

// Goroutines are those of an engine. Unlike a [sync.WaitGroup] they may be started outside and inside of
// testing/synctest bubbles in turn.
type Goroutines struct {
	mu    sync.Mutex
	ended map[*sync.WaitGroup]struct{} // of each
}

// Go starts a goroutine.
func (g *Goroutines) Go(do func()) {
	ended := new(sync.WaitGroup)
	g.mu.Lock()
	if g.ended == nil {
		g.ended = make(map[*sync.WaitGroup]struct{})
	}
	g.ended[ended] = struct{}{}
	g.mu.Unlock()
	ended.Add(1)
	go func() {
		defer func() {
			ended.Done()
			g.forget(ended)
		}()
		do()
	}()
}

// Keep runs fn in a goroutine, and anew when code of the program that it calls, such as an observer or the
// handler of the log, has ended the goroutine or has panicked, of which report is told.
func (g *Goroutines) Keep(fn func(), report func(panicked any)) {
	g.Go(func() {
		returned := false
		defer func() {
			if returned {
				return
			}
			defer g.Keep(fn, report)
			if value := recover(); value != nil {
				report(value)
			}
		}()
		fn()
		returned = true
	})
}

func (g *Goroutines) forget(ended *sync.WaitGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ended, ended)
}

// any returns one of the goroutines; nil if there is none.
func (g *Goroutines) any() *sync.WaitGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ended := range g.ended {
		return ended
	}
	return nil
}

// Wait returns when none runs any more.
func (g *Goroutines) Wait() {
	for ended := g.any(); ended != nil; ended = g.any() {
		ended.Wait()
		g.forget(ended)
	}
}
