package serve

import (
	"log/slog"
	"testing"
	"time"

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
	s.stream, err = s.service.quotas.open("shop", name, make(chan struct{}, 1))
	require.NoError(t, err)
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
