package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
)

// start is an instant at which windows of a minute and less begin.
const start = clock.Instant(1_700_000_040_000_000_000)

// harness is a store on a virtual clock.
type harness struct {
	*memory.Store
	t     *testing.T
	clock *clock.Virtual
}

func newHarness(t *testing.T) *harness {
	c := clock.NewVirtual(start.Time())
	return &harness{Store: memory.New(c), t: t, clock: c}
}

func (h *harness) do(r fleet.Request) fleet.Reply {
	replies := make([]fleet.Reply, 1)
	h.Exchange(h.t.Context(), []fleet.Request{r}, replies)
	return replies[0]
}

// step is a request of a table, made at an instant after start.
type step struct {
	at      time.Duration
	request fleet.Request
	want    fleet.Reply
}

// run makes the requests of a table, in order. State is not compared.
func run(t *testing.T, terms fleet.Terms, operation fleet.Operation, steps []step) *harness {
	t.Helper()
	h := newHarness(t)
	for i, s := range steps {
		h.clock.Advance(start.Add(s.at).Sub(h.clock.Now()))
		s.request.Operation = operation
		if s.request.Terms.Key == "" {
			s.request.Terms = terms
		}
		got := h.do(s.request)
		got.State = ""
		assert.Equal(t, s.want, got, "step %d at %v", i, s.at)
	}
	return h
}

const ms = time.Millisecond
