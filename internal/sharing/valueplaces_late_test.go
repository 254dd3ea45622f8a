package sharing_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
)

// lateWorld is two instances that share the only place of a value.
type lateWorld struct {
	t       *testing.T
	clock   *clock.Virtual
	store   *memory.Store
	members [2]*sharing.Member
	places  [2]*valueplaces.Places
	call    valueplaces.Call
}

func newLateWorld(t *testing.T) *lateWorld {
	t.Helper()
	w := &lateWorld{
		t: t, clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		call: valueplaces.Call{ID: valueplaces.ID{1}, Limit: 1, Cell: valueplaces.ID{'c'}},
	}
	w.store = memory.New(w.clock)
	for i, name := range []string{"one", "two"} {
		w.members[i] = sharing.NewMember(fleet.Config{Manual: true, Instance: name, Backend: w.store}, w.clock, slog.New(slog.DiscardHandler), 1)
		w.places[i] = w.members[i].ValuePlaces(fleet.Terms{Key: "hotParam/a", Limit: 1}, 100, fleet.OutageLast, w.clock.Now())
		w.step(i)
	}
	w.step(0) // it knows the number of instances
	return w
}

// step makes what is due on an instance, and has the store answer at once.
func (w *lateWorld) step(instance int) {
	for _, batch := range w.members[instance].Step(w.clock.Now()) {
		require.NoError(w.t, batch.Send(w.t.Context(), w.store))
		w.members[instance].Deliver(w.clock.Now(), batch)
	}
}

// A grant that is taken only after the process was paused for longer than its lease is void, also if the
// instance has been told meanwhile that the store knows it anew: another one has got the place.
func TestALateGrantOfAPlaceIsVoidAfterAPause(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	waits := w.places[0].Ask(w.clock.Now(), &w.call, func() {})
	sent := w.members[0].Step(w.clock.Now())
	require.NotEmpty(t, sent)
	for _, batch := range sent {
		require.NoError(t, batch.Send(t.Context(), w.store))
		batch.Arrived.Store(true) // and the process is paused before it takes the answer
	}
	w.clock.Advance(2 * time.Second)
	other := w.places[1].Ask(w.clock.Now(), &w.call, func() {})
	w.step(1)
	_, state := other.Poll()
	require.Equal(t, exchange.Allowed, state, "the first one does not live any more")

	w.step(0) // it goes on, and says that it lives
	for _, batch := range sent {
		w.members[0].Deliver(w.clock.Now(), batch)
	}
	_, state = waits.Poll()
	assert.NotEqual(t, exchange.Allowed, state)
	for range 5 {
		w.clock.Advance(10 * time.Millisecond)
		w.step(0)
	}
	_, state = waits.Poll()
	assert.Equal(t, exchange.Denied, state, "it has asked again")
}

// Calls that wait for a place when their process is paused ask when it goes on, whether their request was
// sent before or not: nothing is decided without the store, which answers.
func TestCallsThatWaitWhileTheProcessIsPausedAskWhenItGoesOn(t *testing.T) {
	t.Parallel()
	for name, hasSent := range map[string]bool{"the request is sent": true, "the request is not sent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLateWorld(t)
			waits := w.places[0].Ask(w.clock.Now(), &w.call, func() {})
			if hasSent {
				require.NotEmpty(t, w.members[0].Step(w.clock.Now()), "and is lost")
			}
			w.clock.Advance(2 * time.Second)
			other := w.places[1].Ask(w.clock.Now(), &w.call, func() {})
			w.step(1)
			_, state := other.Poll()
			require.Equal(t, exchange.Allowed, state)
			for range 10 {
				w.step(0)
				w.clock.Advance(10 * time.Millisecond)
			}
			_, state = waits.Poll()
			assert.Equal(t, exchange.Denied, state)
		})
	}
}

// An instance tells of its calls under way anew when the store has lost them, also if the answer that says
// so first is lost: else others get their places.
func TestAnInstanceTellsOfItsCallsAlthoughTheAnswerThatItIsNewIsLost(t *testing.T) {
	t.Parallel()
	for name, forgets := range map[string]func(w *lateWorld){
		"the store has lost its state": func(w *lateWorld) { w.store.Flush() },
		"its lease has ended": func(w *lateWorld) {
			w.clock.Advance(2 * time.Second)
			other := w.places[1].Ask(w.clock.Now(), &w.call, func() {})
			w.step(1)
			ticket, state := other.Poll()
			require.Equal(w.t, exchange.Allowed, state, "the first one does not live any more")
			w.places[1].End(w.clock.Now(), ticket)
			w.clock.Advance(10 * time.Millisecond)
			w.step(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLateWorld(t)
			has := w.places[0].Ask(w.clock.Now(), &w.call, func() {})
			w.step(0)
			_, state := has.Poll()
			require.Equal(t, exchange.Allowed, state)
			forgets(w)

			sent := 0
			for begin := w.clock.Now(); sent == 0 && w.clock.Now() < begin.Add(time.Second); {
				for _, batch := range w.members[0].Step(w.clock.Now()) {
					require.NoError(t, batch.Send(t.Context(), w.store), "its answer is lost")
					sent += len(batch.Requests)
				}
				w.clock.Advance(10 * time.Millisecond)
			}
			require.NotZero(t, sent)
			w.places[0].Ask(w.clock.Now(), &valueplaces.Call{ID: valueplaces.ID{2}, Limit: 1}, func() {})
			w.step(0)       // this one has an answer: there is no outage
			for range 100 { // the store grants nothing in the first of these
				w.clock.Advance(10 * time.Millisecond)
				w.step(0)
			}
			other := w.places[1].Ask(w.clock.Now(), &w.call, func() {})
			w.step(1)
			_, state = other.Poll()
			assert.Equal(t, exchange.Denied, state)
		})
	}
}
