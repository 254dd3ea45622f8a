package sharing_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
)

// valueWorld is instances that share places of values, on a virtual clock, and a network that loses
// and delays what is sent.
type valueWorld struct {
	clock     *clock.Virtual
	store     *memory.Store
	limit     int64
	instances []*valueInstance
	grants    int
}

type valueInstance struct {
	world    *valueWorld
	member   *sharing.Member
	places   *valueplaces.Places
	isPaused bool
	froze    map[valueplaces.ID]int // calls that were under way when it was paused or cut off
	heard    map[string]time.Time   // when the last claim was sent whose answer says that the instance lives, by key
	calls    map[valueplaces.ID][]uint64
	waits    map[*valueplaces.Wait]valueplaces.ID
	onTheWay []*exchange.Batch // requests that the store has not got yet
	back     []*exchange.Batch // answers
}

func newValueWorld(count int, limit int64, onOutage fleet.OnOutage) *valueWorld {
	w := &valueWorld{clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), limit: limit}
	w.store = memory.New(w.clock)
	for i := range count {
		m := sharing.NewMember(fleet.Config{Manual: true, Instance: strconv.Itoa(i), Backend: w.store}, w.clock, slog.New(slog.DiscardHandler), uint64(i+1))
		in := &valueInstance{
			world: w, member: m, calls: map[valueplaces.ID][]uint64{}, waits: map[*valueplaces.Wait]valueplaces.ID{},
			froze: map[valueplaces.ID]int{}, heard: map[string]time.Time{},
			places: m.ValuePlaces(fleet.Terms{Key: "hotParam/a", Limit: float64(limit)}, 100, onOutage, w.clock.Now()),
		}
		w.instances = append(w.instances, in)
	}
	return w
}

func (in *valueInstance) begin(value byte) exchange.State {
	call := valueplaces.Call{ID: valueplaces.ID{value}, Limit: in.world.limit, Cell: valueplaces.ID{'c'}}
	ticket, state := in.places.Take(in.world.clock.Now(), &call)
	switch state {
	case exchange.Allowed:
		in.calls[call.ID] = append(in.calls[call.ID], ticket)
	case exchange.Pending:
		in.waits[in.places.Ask(in.world.clock.Now(), &call, func() {})] = call.ID
	}
	return state
}

// collect looks at the calls that wait.
func (in *valueInstance) collect() {
	for w, id := range in.waits {
		switch ticket, state := w.Poll(); state {
		case exchange.Allowed:
			in.calls[id] = append(in.calls[id], ticket)
			in.world.grants++
			delete(in.waits, w)
		case exchange.Denied:
			delete(in.waits, w)
		}
	}
}

func (in *valueInstance) end(value byte) {
	id := valueplaces.ID{value}
	if n := len(in.calls[id]); n > 0 {
		in.places.End(in.world.clock.Now(), in.calls[id][n-1])
		in.calls[id] = in.calls[id][:n-1]
	}
}

func (in *valueInstance) pause() {
	in.isPaused = true
	for id, calls := range in.calls {
		in.froze[id] = len(calls)
	}
}

// hear notes of which values the store knows that the instance lives.
func (in *valueInstance) hear(batch *exchange.Batch) {
	for i, r := range batch.Requests {
		if r.Value != nil && (r.Value.Value == "" || batch.Replies[i].Value.IsNew) {
			in.heard[r.Terms.Key] = time.UnixMicro(r.Value.Sequence)
		}
	}
}

// noteCutOff notes the calls of values of which the instance has had no answer for as long as the store
// counts them.
func (in *valueInstance) noteCutOff() {
	for id, calls := range in.calls {
		key := "hotParam/a/" + strconv.Itoa(int(id[0]))
		if len(calls) > 0 && in.world.clock.Now().Time().Sub(in.heard[key]) >= 750*time.Millisecond {
			in.froze[id] = max(in.froze[id], len(calls))
		}
	}
}

// step makes what is due, and has the store answer what the network has brought it.
func (in *valueInstance) step(loses func() int) {
	now := in.world.clock.Now()
	for _, batch := range in.onTheWay {
		switch loses() {
		case 0: // the request
			continue
		case 1: // the answer
			_ = batch.Send(context.Background(), in.world.store)
			continue
		}
		if batch.Send(context.Background(), in.world.store) == nil {
			in.back = append(in.back, batch)
		}
	}
	in.onTheWay = nil
	if in.isPaused {
		return
	}
	for _, batch := range in.back {
		in.member.Deliver(now, batch)
		in.hear(batch)
	}
	in.back = nil
	if in.member.Due() <= now {
		in.onTheWay = append(in.onTheWay, in.member.Step(now)...)
	}
	in.collect()
	in.noteCutOff()
}

// advance has some time pass in steps of a millisecond.
func (w *valueWorld) advance(d time.Duration, loses func() int) {
	for range d / time.Millisecond {
		w.clock.Advance(time.Millisecond)
		for _, in := range w.instances {
			in.step(loses)
		}
	}
}

// check says whether more calls are under way than may be: those beside that were under way when their
// instance was paused, or was cut off.
func (w *valueWorld) check(t require.TestingT, values byte) {
	for v := range values {
		total, frozen := 0, 0
		for _, in := range w.instances {
			total += len(in.calls[valueplaces.ID{v}])
			frozen += min(in.froze[valueplaces.ID{v}], len(in.calls[valueplaces.ID{v}]))
		}
		require.LessOrEqual(t, total, int(w.limit)+frozen, "value %d", v)
	}
}

func nothing() int { return 9 }

// No more calls of a value are under way than its limit, but for those that were under way in processes
// that were paused, or had no answer for as long as the store counts their calls: whatever else is lost, comes
// late or twice, and when the store has lost its state.
func TestPlacesOfValuesAreNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const values = 3
		w := newValueWorld(rapid.IntRange(1, 4).Draw(r, "instances"), rapid.Int64Range(1, 4).Draw(r, "limit"), fleet.OutageClosed)
		w.advance(5*time.Millisecond, nothing)
		lossy := rapid.Bool().Draw(r, "lossy")
		loses := func() int {
			if lossy {
				return rapid.IntRange(0, 30).Draw(r, "loss")
			}
			return 9
		}
		for range rapid.IntRange(10, 80).Draw(r, "events") {
			in := w.instances[rapid.IntRange(0, len(w.instances)-1).Draw(r, "instance")]
			value := rapid.Byte().Draw(r, "value") % values
			switch rapid.SampledFrom([]string{"call", "call", "call", "end", "end", "pause", "flush", "wait"}).Draw(r, "event") {
			case "call":
				if !in.isPaused {
					in.begin(value)
				}
			case "end":
				if !in.isPaused {
					in.end(value)
				}
			case "pause":
				if in.isPaused {
					in.isPaused = false
				} else {
					in.pause()
				}
			case "flush":
				w.store.Flush()
			case "wait":
				w.advance(time.Duration(rapid.IntRange(100, 1000).Draw(r, "ms"))*time.Millisecond, loses)
			}
			w.advance(time.Duration(rapid.IntRange(0, 20).Draw(r, "ms"))*time.Millisecond, loses)
			w.check(r, values)
		}
		// When all is over, nothing is left, and a whole limit can be had.
		for _, in := range w.instances {
			in.isPaused = false
			for v := range byte(values) {
				for len(in.calls[valueplaces.ID{v}]) > 0 {
					in.end(v)
				}
			}
		}
		for range 4 {
			w.advance(time.Second, nothing)
			for _, in := range w.instances {
				for v := range byte(values) {
					for len(in.calls[valueplaces.ID{v}]) > 0 {
						in.end(v)
					}
				}
			}
		}
		for _, in := range w.instances {
			count, _ := in.places.Values()
			require.Zero(r, count)
		}
		w.instances[0].begin(0) // a store that has lost its state grants nothing for a while
		w.advance(time.Second, nothing)
		w.instances[0].end(0)
		w.advance(50*time.Millisecond, nothing)
		for range w.limit {
			w.instances[0].begin(0)
		}
		w.advance(50*time.Millisecond, nothing)
		require.Len(r, w.instances[0].calls[valueplaces.ID{0}], int(w.limit))
	})
}
