package kindtest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// engine returns a real engine on a virtual clock, with the rule in force.
func (f *fixture) engine() *core.Engine {
	f.Helper()
	if f.of.Rule.Target().Shadow || f.of.Rule.Target().Origin != "" {
		f.Skip("the rule is not for all calls, or refuses none")
	}
	e := core.New(core.Config{
		Clock: clock.NewVirtual(f.now.Time()), Kinds: f.custom(), Logger: slog.New(slog.DiscardHandler), Lists: f.lists,
	})
	f.load(e, f.of.Rule)
	return e
}

// load puts a document in force that has the rule, and more rules.
func (f *fixture) load(e *core.Engine, r rule.Rule, more ...flow.Rule) {
	f.Helper()
	set, err := f.table().Parse("rule.yaml", f.document(r))
	if err != nil {
		f.Fatalf("the document of the rule cannot be read: %v", err)
	}
	set.Flow = append(set.Flow, more...)
	if err := e.Load(set); err != nil {
		f.Fatalf("the rule cannot be put in force: %v", err)
	}
}

// enter makes a call that does not wait, with the first value of each attribute.
func (f *fixture) enter(e *core.Engine) (core.Guard, error) {
	opts := []core.Option{core.NoWait()}
	for _, key := range f.of.Rule.Attributes() {
		opts = append(opts, core.String(key, f.of.Value(1)))
	}
	return e.Entry(context.Background(), f.of.Resource, opts...)
}

// enterAll makes calls in several goroutines at once, and returns the guards of those that pass.
func (f *fixture) enterAll(e *core.Engine, each int) []*core.Guard {
	var mu sync.Mutex
	var guards []*core.Guard
	var failed atomic.Pointer[error]
	together(func(int) {
		for range each {
			guard, err := f.enter(e)
			if err != nil {
				if !errors.Is(err, core.ErrBlocked) {
					failed.Store(&err)
				}
				continue
			}
			mu.Lock()
			guards = append(guards, &guard)
			mu.Unlock()
		}
	})
	if err := failed.Load(); err != nil {
		f.Errorf("a call fails: %v", *err)
	}
	return guards
}

func engineLetsSoManyPass(f *fixture) {
	e := f.engine()
	defer e.Close()
	each, want := f.of.Passes/goroutines+10, f.of.Passes
	if f.of.Passes == All {
		each, want = 10, 10*goroutines
	}
	guards := f.enterAll(e, each)
	if len(guards) != want {
		f.Errorf("%d calls pass in an engine while none ends, not %d", len(guards), want)
	}
	for i := range guards {
		guards[i].Exit()
	}
}

func engineKeepsTheStateOverReloads(f *fixture) {
	f.limited()
	if f.of.Forgets {
		f.Skip("a changed rule starts anew")
	}
	f.adopt(f.limiter()) // skips kinds that start anew
	e := f.engine()
	defer e.Close()
	guards := f.enterAll(e, f.of.Passes/goroutines+10)
	for range 3 {
		f.load(e, f.of.Stricter)
		guards = append(guards, f.enterAll(e, 10)...)
		f.load(e, f.of.Rule)
		guards = append(guards, f.enterAll(e, 10)...)
	}
	if len(guards) != f.of.Passes {
		f.Errorf("%d calls pass at one instant while the rule is changed and changed back, not %d", len(guards), f.of.Passes)
	}
	for i := range guards {
		guards[i].Exit()
	}
}

// refusalsByOtherRulesTakeNothing lets another rule refuse calls that this one let pass.
func refusalsByOtherRulesTakeNothing(f *fixture) {
	f.limited()
	e := f.engine()
	defer e.Close()
	f.load(e, f.of.Rule, flow.Rule{Name: "kindtest: nothing", Resource: f.of.Resource, Limit: 0})
	if guards := f.enterAll(e, f.of.Passes/goroutines+10); len(guards) > 0 {
		f.Fatalf("calls pass by a flow rule with the limit 0")
	}
	f.load(e, f.of.Rule)
	guards := f.enterAll(e, f.of.Passes/goroutines+10)
	if len(guards) != f.of.Passes {
		f.Errorf("%d calls pass, not %d, after another rule has refused some", len(guards), f.of.Passes)
	}
	for i := range guards {
		guards[i].Exit()
	}
}
