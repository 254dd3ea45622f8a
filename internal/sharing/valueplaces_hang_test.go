package sharing_test

import (
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
)

// flood is calls of an instance, each of another value.
type flood struct {
	w       *lateWorld
	waits   map[*valueplaces.Wait]bool
	tickets []uint64
	passed  int
	denied  int
	calls   uint64
	most    int // that waited at once
}

func (w *lateWorld) flood() *flood { return &flood{w: w, waits: map[*valueplaces.Wait]bool{}} }

func (f *flood) call(limit int64) {
	f.calls++
	call := valueplaces.Call{Limit: limit, Cell: valueplaces.ID{'c'}}
	binary.BigEndian.PutUint64(call.ID[:], f.calls<<48|f.calls)
	switch ticket, state := f.w.places[0].Take(f.w.clock.Now(), &call); state {
	case exchange.Allowed:
		f.pass(ticket)
	case exchange.Denied:
		f.denied++
	case exchange.Pending:
		f.waits[f.w.places[0].Ask(f.w.clock.Now(), &call, func() {})] = true
		f.collect()
	}
}

func (f *flood) pass(ticket uint64) {
	f.passed++
	f.tickets = append(f.tickets, ticket)
}

func (f *flood) collect() {
	for w := range f.waits {
		switch ticket, state := w.Poll(); state {
		case exchange.Allowed:
			f.pass(ticket)
			delete(f.waits, w)
		case exchange.Denied:
			f.denied++
			delete(f.waits, w)
		}
	}
	f.most = max(f.most, len(f.waits))
}

// end ends the calls that have passed.
func (f *flood) end() {
	for _, ticket := range f.tickets {
		f.w.places[0].End(f.w.clock.Now(), ticket)
	}
	f.tickets = nil
}

// When the store hangs, calls of values do not pile up until that is certain: a few wait for an answer that
// may be late, and all others are decided on at once, as in the outage.
func TestCallsOfValuesDoNotPileUpWhenTheStoreHangs(t *testing.T) {
	t.Parallel()
	for onOutage, passes := range map[fleet.OnOutage]bool{
		fleet.OutageLast: true, fleet.OutageShare: true, fleet.OutageOpen: true, fleet.OutageClosed: false,
	} {
		t.Run(string(onOutage), func(t *testing.T) {
			t.Parallel()
			w := newLateWorld(t)
			w.places[0].Change(fleet.Terms{Key: "hotParam/a", Limit: 2}, 100_000, onOutage)
			for range 12 { // until it knows of the other one
				w.clock.Advance(100 * time.Millisecond)
				w.step(0)
				w.step(1)
			}
			f := w.flood()
			for range 3000 {
				w.deaf(0, time.Millisecond)
				for range 5 {
					f.call(2)
				}
				f.collect()
				f.end()
			}
			assert.LessOrEqual(t, f.most, 1000)
			assert.Empty(t, f.waits)
			if passes {
				assert.Zero(t, f.denied)
			} else {
				assert.Zero(t, f.passed)
			}
		})
	}
}

// Calls of few values wait for late answers as before, and those of a value that is used up are refused,
// however many come while the store hangs.
func TestNoMoreCallsOfAUsedUpValuePassHoweverManyComeWhileAnswersAreLate(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	w.places[0].Change(fleet.Terms{Key: "hotParam/a", Limit: 1}, 100_000, fleet.OutageLast)
	w.has(1, &w.call)
	denied := w.places[0].Ask(w.clock.Now(), &w.call, func() {})
	w.step(0)
	_, state := denied.Poll()
	require.Equal(t, exchange.Denied, state)
	f := w.flood()
	for range 700 {
		w.deaf(0, time.Millisecond)
		for range 5 {
			f.call(1)
		}
		ticket, state := w.places[0].Take(w.clock.Now(), &w.call)
		require.NotEqual(t, exchange.Allowed, state, ticket)
	}
}

// A store that answers, but not as fast as calls come, has no more calls wait than one that hangs. Those that
// pass without it are told of: it grants nothing beside them.
func TestCallsOfValuesDoNotPileUpWhenTheStoreIsSlow(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	for _, p := range w.places {
		p.Change(fleet.Terms{Key: "hotParam/a", Limit: 1}, 100_000, fleet.OutageLast)
	}
	type sent struct {
		batch *exchange.Batch
		at    clock.Instant
	}
	var onTheWay []sent
	f := w.flood()
	advance := func() {
		w.clock.Advance(time.Millisecond)
		for len(onTheWay) > 0 && w.clock.Now() >= onTheWay[0].at {
			require.NoError(t, onTheWay[0].batch.Send(t.Context(), w.store))
			w.members[0].Deliver(w.clock.Now(), onTheWay[0].batch)
			onTheWay = onTheWay[1:]
		}
		for _, batch := range w.members[0].Step(w.clock.Now()) {
			onTheWay = append(onTheWay, sent{batch, w.clock.Now().Add(90 * time.Millisecond)})
		}
		f.collect()
	}
	const calls = 6000
	for range calls / 50 {
		for range 50 {
			f.call(1)
		}
		advance()
	}
	assert.LessOrEqual(t, f.most, 1000)
	assert.Zero(t, f.denied, "no value has two calls")
	for range 300 {
		advance()
	}
	assert.Zero(t, w.members[0].Status(w.clock.Now()).Outages)
	require.Equal(t, calls, f.passed)
	for i := range uint64(calls) {
		call := valueplaces.Call{Limit: 1, Cell: valueplaces.ID{'c'}}
		binary.BigEndian.PutUint64(call.ID[:], (i+1)<<48|(i+1))
		w.places[1].Ask(w.clock.Now(), &call, func() {})
		if i%500 == 499 {
			w.step(1)
		}
	}
	assert.Zero(t, w.members[1].Status(w.clock.Now()).Limits[0].Places.InUse, "all are in use on the first one")
}

// A server of several that hangs is an outage of the values that it has alone, and delays no calls of others.
func TestServerThatHangsIsAnOutageOfItsValuesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newPartitionedMember(t)
		p := m.ValuePlaces(fleet.Terms{Key: "values/a", Limit: 1}, 100_000, fleet.OutageClosed, m.clock.Now())
		calls := uint64(0)
		var mu sync.Mutex // guards longest and passed
		longest := [2]time.Duration{}
		passed := [2]int{}
		call := func(id uint64) {
			c := valueplaces.Call{Limit: 1}
			binary.BigEndian.PutUint64(c.ID[:], id<<56|id)
			server, began, woken := id&1, time.Now(), make(chan struct{})
			ticket, state := p.Take(m.clock.Now(), &c)
			if state == exchange.Pending {
				waits := p.Ask(m.clock.Now(), &c, func() { close(woken) })
				<-woken
				ticket, state = waits.Poll()
			}
			if state == exchange.Allowed {
				p.End(m.clock.Now(), ticket)
			}
			mu.Lock()
			defer mu.Unlock()
			longest[server] = max(longest[server], time.Since(began))
			if state == exchange.Allowed {
				passed[server]++
			}
		}
		during := func(d time.Duration) ([2]time.Duration, [2]int) {
			mu.Lock()
			longest, passed = [2]time.Duration{}, [2]int{}
			mu.Unlock()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
				calls++
				go call(calls)
				synctest.Wait()
			}
			mu.Lock()
			defer mu.Unlock()
			return longest, passed
		}
		during(time.Second)
		m.store.failing.Store(server1)
		took, _ := during(2 * time.Second)
		assert.Zero(t, took[0], "the other server answers at once")
		assert.LessOrEqual(t, took[1], time.Second)
		took, ended := during(time.Second)
		assert.Equal(t, 500, ended[0])
		assert.Zero(t, took[0])
		assert.Zero(t, ended[1], "closed")
		assert.LessOrEqual(t, took[1], 300*time.Millisecond, "a few ask whether it answers")
		m.store.failing.Store(none)
		during(time.Second)
		took, ended = during(time.Second)
		assert.Equal(t, [2]int{500, 500}, ended)
		assert.Zero(t, took)
	})
}
