package isolation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// wide is a limit that no benchmark reaches.
func wide() isolation.Rule { return isolation.Rule{Resource: "r", Limit: 1_000_000} }

// none is a rule without a place.
func none() isolation.Rule { return isolation.Rule{Resource: "r", Limit: 0} }

func BenchmarkPassAndDone(b *testing.B) {
	l := newLimiter(b, wide())
	call, exit := rule.Call{Now: epoch, Tokens: 1}, rule.Exit{Now: epoch, Start: epoch}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ticket, _ := l.Acquire(call)
			l.Done(ticket, exit)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				ticket, _ := l.Acquire(call)
				l.Done(ticket, exit)
			}
		})
	})
}

// BenchmarkFairPassAndDone is a call of one of 1000 tenants as the engine makes it, which reads the tenant of
// few calls. The rule without tenants has the same queue.
func BenchmarkFairPassAndDone(b *testing.B) {
	r := wide()
	r.MaxWait = time.Second
	fair := r
	fair.FairBy = rule.StringsOf("tenant")
	equal := fair
	equal.Newcomers = rule.NewcomersEqual
	names := make([]rule.Attribute, 1000)
	for i := range names {
		names[i] = rule.String(fmt.Sprint("tenant-", i))
	}
	for name, r := range map[string]isolation.Rule{"no tenants": r, "newcomers half": fair, "newcomers equal": equal} {
		b.Run(name, func(b *testing.B) {
			l := newLimiter(b, r)
			late := l.(optional.LateReader)
			now := epoch
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now += 137
				call := rule.Call{Now: now, Tokens: 1}
				ticket, decision := late.AcquireUnread(call)
				if decision == optional.NeedsAttribute {
					call.Attribute = names[i%len(names)]
					ticket, _ = l.Acquire(call)
				}
				l.Done(ticket, rule.Exit{Now: now, Start: now})
			}
		})
	}
}

func BenchmarkPassAndGiveBack(b *testing.B) {
	l := newLimiter(b, wide())
	call := rule.Call{Now: epoch, Tokens: 1}
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := l.Acquire(call)
		l.GiveBack(epoch, ticket, 1)
	}
}

func BenchmarkRefuse(b *testing.B) {
	full := isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: 1}
	for name, r := range map[string]isolation.Rule{"without a queue": none(), "with a full queue": full} {
		l := newLimiter(b, r)
		call := rule.Call{Now: epoch, Tokens: 1}
		if r.Limit > 0 {
			l.Acquire(call)
			l.Join(call, patience(func() {}))
		}
		b.Run(name+", serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Acquire(call)
			}
		})
		b.Run(name+", parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Acquire(call)
				}
			})
		})
	}
}

// BenchmarkWait hands the only place on: a call joins, the one before it ends.
func BenchmarkWait(b *testing.B) {
	for name, waiters := range map[string]int{"alone": 0, "behind 10,000": 10_000} {
		b.Run(name, func(b *testing.B) {
			l := newLimiter(b, isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: isolation.MaxMaxQueue})
			call, exit := rule.Call{Now: epoch, Tokens: 1}, rule.Exit{Now: epoch}
			l.Acquire(call)
			queue := make([]rule.Waiter, 0, waiters+1)
			for range waiters {
				w, _, _ := l.Join(call, patience(func() {}))
				queue = append(queue, w)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w, _, _ := l.Join(call, patience(func() {}))
				if len(queue) < waiters+1 {
					queue = append(queue, w)
				} else {
					queue[(i+waiters)%len(queue)] = w
				}
				l.Done(0, exit)
				queue[i%len(queue)].Poll(epoch)
			}
		})
	}
}

// BenchmarkLeave has calls give up in the middle of a long queue.
func BenchmarkLeave(b *testing.B) {
	l := newLimiter(b, isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: isolation.MaxMaxQueue})
	call := rule.Call{Now: epoch, Tokens: 1}
	l.Acquire(call)
	for range 10_000 {
		l.Join(call, patience(func() {}))
	}
	middle, _, _ := l.Join(call, patience(func() {}))
	for range 10_000 {
		l.Join(call, patience(func() {}))
	}
	b.ReportAllocs()
	for b.Loop() {
		middle.Leave(epoch)
		middle, _, _ = l.Join(call, patience(func() {}))
	}
}

// BenchmarkFleetPassAndDone is a call under a limit of the whole fleet, whose places are leased.
func BenchmarkFleetPassAndDone(b *testing.B) {
	l := leased(b)
	call, exit := rule.Call{Now: epoch.Add(time.Second), Tokens: 1}, rule.Exit{Now: epoch.Add(time.Second)}
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := l.Acquire(call)
		l.Done(ticket, exit)
	}
}
