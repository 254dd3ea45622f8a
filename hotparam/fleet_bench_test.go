package hotparam_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rule"
)

// fleetCalls returns calls of so many values, each with tokens that this instance has leased.
func fleetCalls(s *scene, values int) []rule.Call {
	in := s.instances[0]
	calls := make([]rule.Call, values)
	for i := range calls {
		calls[i] = rule.Call{Tokens: 1, Attribute: user("user-" + strconv.Itoa(i))}
	}
	s.run(40*time.Millisecond, func(*instance, int) {
		for i := range calls {
			calls[i].Now = s.clock.Now()
			in.limiter.Acquire(calls[i])
		}
	})
	return calls
}

func TestCallsOfKnownValuesDoNotAllocate(t *testing.T) {
	for name, limit := range map[string]float64{"passed": 1e9, "refused": 1e-3} {
		s := newScene(t, shared(hotparam.Rule{Limit: limit, Burst: max(1, limit)}), 1)
		in, calls := s.instances[0], fleetCalls(s, 100)
		i := 0
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			calls[i%100].Now = s.clock.Now()
			ticket, decision := in.limiter.Acquire(calls[i%100])
			if decision == rule.Pass {
				in.limiter.GiveBack(s.clock.Now(), ticket, 1)
			}
			i++
		}), name)
	}
}

// TestValuesOfTheFleetTakeBoundedMemory says how much memory a value takes.
func TestValuesOfTheFleetTakeBoundedMemory(t *testing.T) {
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		const values = 20_000
		r := shared(hotparam.Rule{Limit: 10, MaxValues: 2 * values, Fleet: rule.Fleet{Mode: mode}})
		s := newScene(t, r, 1)
		in := s.instances[0]
		before := heap()
		for i := range values {
			in.call("user-" + strconv.Itoa(i))
			if i%100 == 0 {
				s.run(time.Millisecond, nil)
			}
		}
		s.run(3*time.Second, nil)
		clear(s.passed)
		used := float64(heap()-before) / values
		t.Logf("%s: %.0f B a value", mode, used)
		assert.Less(t, used, 1700.0)
		runtime.KeepAlive(in)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkFleet is what a rule of the fleet adds to a call, beside one of the instance.
func BenchmarkFleet(b *testing.B) {
	for _, c := range []struct {
		name   string
		limit  float64
		values int
		scope  rule.Scope
	}{
		{"passed, 1 value, instance", 1e8, 1, rule.ScopeInstance},
		{"passed, 1 value, fleet", 1e8, 1, rule.ScopeFleet},
		{"passed, 10000 values, instance", 1e8, 10_000, rule.ScopeInstance},
		{"passed, 10000 values, fleet", 1e8, 10_000, rule.ScopeFleet},
		{"refused, 10000 values, instance", 1e-3, 10_000, rule.ScopeInstance},
		{"refused, 10000 values, fleet", 1e-3, 10_000, rule.ScopeFleet},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := shared(hotparam.Rule{Limit: c.limit, Burst: max(1, c.limit)})
			r.Scope = c.scope
			s := newScene(b, r, 1)
			l, calls := s.instances[0].limiter, fleetCalls(s, c.values)
			b.ReportAllocs()
			i, now, refused := 0, s.clock.Now(), 0
			for b.Loop() {
				calls[i].Now = now
				ticket, decision := l.Acquire(calls[i])
				if decision == rule.Pass {
					l.GiveBack(now, ticket, 1) // so that leased tokens last
				} else {
					refused++
				}
				if i++; i == len(calls) {
					i = 0
				}
			}
			b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
		})
	}
}

// BenchmarkFleetMiss is what the first call of a value costs.
func BenchmarkFleetMiss(b *testing.B) {
	c := clock.NewVirtual(epoch.Time())
	m := sharing.NewMember(fleet.Config{Manual: true, Instance: "a"}, c, nil, 1)
	r := hotparam.Kind().Of(shared(hotparam.Rule{Limit: 10, MaxValues: 1_000_000})).WithDefaults()
	l := r.NewLimiter(rule.Env{Version: 1, Now: epoch, Fleet: m, Seed: 1})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Acquire(rule.Call{Now: epoch, Tokens: 1, Attribute: rule.Int(int64(i))})
	}
}
