package sharing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
)

// deaf has an instance go on for a while without an answer of the store.
func (w *lateWorld) deaf(instance int, d time.Duration) {
	for range d / time.Millisecond {
		w.clock.Advance(time.Millisecond)
		w.members[instance].Step(w.clock.Now())
	}
}

// has returns the ticket of a call that has got a place.
func (w *lateWorld) has(instance int, call *valueplaces.Call) uint64 {
	w.t.Helper()
	waits := w.places[instance].Ask(w.clock.Now(), call, func() {})
	w.step(instance)
	ticket, state := waits.Poll()
	require.Equal(w.t, exchange.Allowed, state)
	return ticket
}

// While the store may still count what an instance has told, no answer in time is no outage: calls of values
// of which it has no place wait for the answer, and pass neither beside those of others nor when there is none.
func TestCallsOfValuesWaitForLateAnswers(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	w.has(1, &w.call)
	waits := w.places[0].Ask(w.clock.Now(), &w.call, func() {})
	w.deaf(0, 600*time.Millisecond)
	require.Positive(t, w.members[0].Status(w.clock.Now()).Outages)
	_, state := w.places[0].Take(w.clock.Now(), &w.call)
	assert.Equal(t, exchange.Pending, state)
	_, state = waits.Poll()
	assert.Equal(t, exchange.Pending, state)

	for range 20 {
		w.clock.Advance(10 * time.Millisecond)
		w.step(0)
	}
	_, state = waits.Poll()
	assert.Equal(t, exchange.Denied, state, "as the store says")
}

// In an outage an instance goes on with the places of a value that it has. It takes no more of one of which the
// store had none left; of all other values it has its part at least.
func TestInstanceGoesOnWithItsPlacesOfValuesInAnOutage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		here, there int // calls under way when the outage begins
		isDenied    bool
		most        int // calls here in the outage
	}{
		"nothing is known":           {most: 3},
		"some are left":              {here: 1, most: 3},
		"it has more than its part":  {here: 5, most: 5},
		"none is left":               {here: 1, there: 5, isDenied: true, most: 1},
		"none is left, and it has 0": {there: 6, isDenied: true, most: 0},
		"it has all":                 {here: 6, isDenied: true, most: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLateWorld(t)
			for range 12 { // until it knows of the other one
				w.clock.Advance(100 * time.Millisecond)
				w.step(0)
				w.step(1)
			}
			w.call.Limit = 6
			var tickets []uint64
			for range test.here {
				tickets = append(tickets, w.has(0, &w.call))
			}
			for range test.there {
				w.has(1, &w.call)
			}
			if test.isDenied {
				denied := w.places[0].Ask(w.clock.Now(), &w.call, func() {})
				w.step(0)
				_, state := denied.Poll()
				require.Equal(t, exchange.Denied, state)
			}

			begins := w.places[0].Ask(w.clock.Now(), &valueplaces.Call{ID: valueplaces.ID{2}, Limit: 6}, func() {})
			w.deaf(0, 740*time.Millisecond)
			_, state := begins.Poll()
			require.Equal(t, exchange.Pending, state)
			w.deaf(0, 20*time.Millisecond)
			_, state = begins.Poll()
			require.Equal(t, exchange.Allowed, state)
			for _, ticket := range tickets {
				w.places[0].End(w.clock.Now(), ticket)
			}
			for range 10 {
				w.places[0].Take(w.clock.Now(), &w.call)
			}
			assert.EqualValues(t, test.most, w.places[0].InUse(w.call.ID))
		})
	}
}

// A place that an instance has is used again although answers are late: the store counts it.
func TestFreePlacesOfValuesAreUsedWhileAnswersAreLate(t *testing.T) {
	t.Parallel()
	for _, onOutage := range []fleet.OnOutage{fleet.OutageLast, fleet.OutageClosed} {
		w := newLateWorld(t)
		w.places[0].Change(fleet.Terms{Key: "hotParam/a", Limit: 1}, 100, onOutage)
		ticket := w.has(0, &w.call)
		w.places[0].Ask(w.clock.Now(), &valueplaces.Call{ID: valueplaces.ID{2}, Limit: 1}, func() {})
		w.deaf(0, 200*time.Millisecond)
		require.Positive(t, w.members[0].Status(w.clock.Now()).Outages)
		w.places[0].End(w.clock.Now(), ticket)
		_, state := w.places[0].Take(w.clock.Now(), &w.call)
		assert.Equal(t, exchange.Allowed, state, onOutage)
	}
}

// Calls of an instance that was cut off, whose places others have got, make way as they end: places of a value
// that are too many are not used again.
func TestPlacesOfValuesThatAreTooManyAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	ticket := w.has(0, &w.call)
	w.deaf(0, 2*time.Second)
	w.has(1, &w.call)
	for range 30 {
		w.clock.Advance(10 * time.Millisecond)
		w.step(0)
	}
	require.EqualValues(t, 2, w.places[0].InUse(w.call.ID)+w.places[1].InUse(w.call.ID))

	w.places[0].End(w.clock.Now(), ticket)
	_, state := w.places[0].Take(w.clock.Now(), &w.call)
	assert.NotEqual(t, exchange.Allowed, state)
}
