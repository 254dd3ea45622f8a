package serve

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/rules"
)

// fleetServer is a server of a fleet, with one data plane.
type fleetServer struct {
	service *RLQS
	stream  *quotaStream
	demand  float64 // requests per second
	last    clock.Instant
}

func newFleetServer(t *testing.T, backend fleet.Backend, name string, demand float64) *fleetServer {
	t.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: backend, Instance: name}})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("a.yaml", []byte("flow: [{resource: orders, limit: 500, scope: fleet}, {name: own, resource: orders, limit: 450}]"))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	s := &fleetServer{service: NewRLQS(engine, RLQSOptions{}), demand: demand, last: engine.Clock().Now()}
	t.Cleanup(s.service.Close)
	s.stream = newQuotaStream("shop", name, make(chan struct{}, 1))
	require.NoError(t, s.service.quotas.enter())
	s.service.run()
	return s
}

// report reports the requests since the last report, and returns the rate that is assigned.
func (s *fleetServer) report() (rate float64) {
	now := s.service.engine.Clock().Now()
	requests := s.demand * now.Sub(s.last).Seconds()
	s.last = now
	q := s.service.quotas
	q.report(s.stream, now, []quotaUsage{{map[string]string{"resource": "orders"}, requests, 0}}, 0)
	q.take(s.stream, nil)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, share := range s.stream.shares {
		rate = share.assignment.rate
	}
	return rate
}

func TestServersOfAFleetDivideALimitByTheDemandOfTheirDataPlanes(t *testing.T) {
	backend := memory.New(clock.System())
	a := newFleetServer(t, backend, "a", 1500)
	b := newFleetServer(t, backend, "b", 50)
	divided := func(least, most float64, of, other *fleetServer) {
		t.Helper()
		require.Eventually(t, func() bool {
			rate, rest := of.report(), other.report()
			return rate >= least && rate <= most && rate+rest <= 510
		}, eventually, 150*time.Millisecond)
	}
	divided(380, 450, a, b)
	a.demand, b.demand = 50, 1500
	divided(380, 450, b, a)
	b.service.Close() // hands back its part
	require.Eventually(t, func() bool { return a.report() > 400 }, eventually, 150*time.Millisecond)
}

// fleetWorld is data planes and three servers of a fleet, whose limit is 500,000 a second, in the time of a bubble.
type fleetWorld struct {
	*quotaWorld
	servers []*RLQS
}

func newFleetWorld(t *testing.T, every time.Duration, newer bool, demand float64) *fleetWorld {
	t.Helper()
	w := &fleetWorld{quotaWorld: newQuotaWorld(50, every, newer, 0, demand)}
	backend := memory.New(clock.System())
	for i := range 3 {
		engine := core.New(core.Config{
			Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: backend, Instance: fmt.Sprint("server", i)},
		})
		t.Cleanup(engine.Close)
		set, err := rules.Parse("a.yaml", []byte("flow: [{resource: orders, limit: 500000, scope: fleet}]"))
		require.NoError(t, err)
		require.NoError(t, engine.Load(set))
		w.servers = append(w.servers, NewRLQS(engine, RLQSOptions{ReportInterval: every}))
		t.Cleanup(w.servers[i].Close)
	}
	now := w.servers[0].engine.Clock().Now()
	for _, p := range w.planes {
		p.next = now.Add(p.next.Sub(w.now))
	}
	w.now = now
	return w
}

// run runs for so many seconds.
func (w *fleetWorld) run(seconds int) {
	for range seconds {
		passed := 0.0
		for range time.Second / slot {
			time.Sleep(slot)
			synctest.Wait()
			w.now = w.servers[0].engine.Clock().Now()
			for i, p := range w.planes {
				server := w.servers[i%len(w.servers)]
				w.server = server.quotas
				passed += w.step(p)
				server.run()
				w.deliver(p)
			}
		}
		w.seconds = append(w.seconds, passed)
	}
}

// wait has the servers be there for so long before the first data plane.
func (w *fleetWorld) wait(d time.Duration) {
	time.Sleep(d)
	now := w.servers[0].engine.Clock().Now()
	for _, p := range w.planes {
		p.next = p.next.Add(now.Sub(w.now))
	}
	w.now = now
}

// Servers that know each other divide a limit before they know its demand.
func TestServersOfAFleetPassALimitThatIsNewFromTheFirstSecond(t *testing.T) {
	eachEnvoy(t, func(t *testing.T, every time.Duration, newer bool) {
		synctest.Test(t, func(t *testing.T) {
			w := newFleetWorld(t, every, newer, 2*500_000)
			w.wait(every + 2*time.Second)
			w.run(2)
			all, least, _ := w.parts(0, 500_000)
			t.Logf("passed %.3f, %.3f at least", all, least)
			assert.GreaterOrEqual(t, least, map[time.Duration]float64{time.Second: 0.85, 5 * time.Second: 0.55}[every])
			w.run(10) // demands become known, and all parts change
			_, _, worst := w.parts(0, 500_000)
			t.Logf("%.3f at most", worst)
			assert.LessOrEqual(t, worst, 1.03)
			if all, _, _ := w.parts(6, 500_000); every == time.Second {
				assert.InDelta(t, 1.0025, all, 0.0075, "it has settled")
			}
		})
	})
}

// With lumps of 200 ms told to the fleet, servers move their parts all the time: 50 messages a second at a load of .9.
func TestServersOfAFleetPassTheLimitWithFewMessages(t *testing.T) {
	for _, load := range []float64{0.9, 2} {
		eachEnvoy(t, func(t *testing.T, every time.Duration, newer bool) {
			synctest.Test(t, func(t *testing.T) {
				w := newFleetWorld(t, every, newer, load*500_000)
				w.run(20)
				before := w.messages
				w.run(40)
				all, least, worst := w.parts(20, min(load, 1)*500_000)
				perSecond := float64(w.messages-before) / 40
				t.Logf("load %v: passed %.4f, %.3f to %.3f, %.1f messages/s", load, all, least, worst, perSecond)
				assert.InDelta(t, 1.0025, all, 0.0075)
				assert.GreaterOrEqual(t, least, 0.99)
				assert.LessOrEqual(t, worst, 1.03)
				assert.LessOrEqual(t, perSecond, map[time.Duration]float64{time.Second: 70, 5 * time.Second: 20}[every])
			})
		})
	}
}
