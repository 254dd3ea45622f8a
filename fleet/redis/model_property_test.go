package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/rule"
)

// pair is a store in a server that runs the real Lua, beside the model of what it does. Both
// have one clock.
type pair struct {
	server *miniredis.Miniredis
	store  *Store
	model  *memory.Store
	clock  *clock.Virtual
	time   time.Time // of both
	seen   []string  // states that were told
}

func newPair(t testing.TB) *pair {
	server := miniredis.NewMiniRedis()
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	return &pair{server: server, store: open(t, Options{Addresses: []string{server.Addr()}})}
}

// reset empties both stores.
func (p *pair) reset() {
	p.time = time.UnixMicro(1_700_000_000_123_456)
	p.clock = clock.NewVirtual(p.time)
	p.model = memory.New(p.clock)
	p.server.FlushAll()
	p.server.SetTime(p.time)
	p.seen = []string{"", "", "", "1700000000200000", "100000x10:17000000001:5,0,3", "7x3:1:0;;nonsense", "12345"}
}

// isBalance says whether a key is that of a balance, which has no end.
func isBalance(key string) bool { return strings.HasSuffix(key, ":b") }

// advance moves the clock, or has it jump: a key ends when its time has come on the clock of
// the server, as in Redis.
func (p *pair) advance(d time.Duration, jump bool) {
	if jump {
		p.model.Shift(d)
	} else {
		p.clock.Advance(d)
	}
	p.time = p.time.Add(d)
	p.server.SetTime(p.time)
	for _, key := range p.server.Keys() {
		if isBalance(key) {
			continue
		}
		if left := p.server.TTL(key) - d; left > 0 {
			p.server.SetTTL(key, left)
		} else {
			p.server.Del(key)
		}
	}
}

// calendars are those of some windows that end within the times that are drawn.
func calendars() []rule.Calendar {
	var all []rule.Calendar
	for _, start := range []string{"2023-11-14T23:13:20", "2023-11-14T23:14:00"} { // in Berlin: now, and soon
		for _, period := range []rule.Period{{Count: 1, Unit: rule.Day}, {Count: 1, Unit: rule.Month}} {
			all = append(all, rule.Calendar{Period: period, TimeZone: "Europe/Berlin", StartsAt: start})
		}
	}
	return all
}

func drawRequest(t *rapid.T, seen []string) fleet.Request {
	limit := rapid.OneOf(
		rapid.Float64Range(0, 20), rapid.SampledFrom([]float64{0, .001, .5, 1, 3, 7, 10, 100, 1000, 123_456.789, 1e6, 1e9}),
	).Draw(t, "limit")
	window := rapid.SampledFrom([]time.Duration{
		time.Millisecond, 7 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute, 1234567 * time.Microsecond,
	}).Draw(t, "window")
	var windows rule.Calendar
	if rapid.IntRange(0, 3).Draw(t, "calendar") == 0 {
		windows = rapid.SampledFrom(calendars()).Draw(t, "windows")
		window = windows.Length(window)
	}
	small := rapid.Int64Range(0, 30)
	tokens := rapid.OneOf(small, small, rapid.Int64Range(0, 1000), rapid.SampledFrom([]int64{1e6, 1e12, fleet.MaxTokens}))
	span := rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Millisecond, 50 * time.Millisecond, time.Second, time.Minute})
	r := fleet.Request{
		Operation: fleet.Operation(rapid.IntRange(0, int(fleet.AskBalance)).Draw(t, "operation")),
		Terms: fleet.Terms{
			Key:    rapid.SampledFrom([]string{"flow/a", "flow/b"}).Draw(t, "key"),
			Limit:  limit,
			Window: window, Calendar: windows.Compile(),
			Burst:   float64(tokens.Draw(t, "burst")) / rapid.SampledFrom([]float64{1, 1, 4}).Draw(t, "part"),
			Buckets: rapid.SampledFrom([]int{1, 2, 7, 10, 10, 10, 31}).Draw(t, "buckets"),
			MaxWait: span.Draw(t, "maxWait"),
		},
		Want:    tokens.Draw(t, "want"),
		Quantum: tokens.Draw(t, "quantum"),
		Queue:   span.Draw(t, "queue"),
		Ahead:   span.Draw(t, "ahead"),
		Seen:    rapid.SampledFrom(seen).Draw(t, "seen"),
		Keep:    span.Draw(t, "keep"),
	}
	if rapid.IntRange(0, 2).Draw(t, "settles") == 0 {
		r.Back, r.Owed = tokens.Draw(t, "back"), tokens.Draw(t, "owed")
		r.OwedBefore = rapid.SliceOfN(tokens, 0, 4).Draw(t, "owedBefore")
		r.Age = span.Draw(t, "age")
	}
	if r.Operation > fleet.LeaseWindow && rapid.IntRange(0, 3).Draw(t, "returns") == 0 {
		r.Want = -r.Want
	}
	if r.Operation == fleet.AskBalance { // one has an end, which is an error
		r.Want, r.Owed = r.Want%1e6, r.Owed%1e6
	}
	return r
}

// The scripts do exactly what the model does, whatever is asked in whatever order, with
// clocks that jump and states that are lost.
func TestScriptsDoWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	rapid.Check(t, func(r *rapid.T) {
		p.reset()
		last := map[string]int64{}        // the bucket of the last grant, by key and operation
		terms := map[string]fleet.Terms{} // most requests have those of the one before
		r.Repeat(map[string]func(*rapid.T){
			"": func(r *rapid.T) {
				if have, want := len(p.server.Keys()), p.model.Len(); have != want {
					r.Fatalf("the server has %d keys %v, the model %d", have, p.server.Keys(), want)
				}
				for _, key := range p.server.Keys() {
					if (p.server.TTL(key) <= 0) != isBalance(key) {
						r.Fatalf("%s has the expiry %v", key, p.server.TTL(key))
					}
				}
			},
			"request": func(r *rapid.T) {
				request := drawRequest(r, p.seen)
				name := fmt.Sprint(request.Terms.Key, request.Operation)
				if known, ok := terms[name]; ok && rapid.IntRange(0, 4).Draw(r, "changes") > 0 {
					request.Terms = known
				}
				terms[name] = request.Terms
				request.BackTo, request.At = last[name], p.time.Add(rapid.SampledFrom([]time.Duration{0, -time.Hour, time.Hour}).Draw(r, "apart"))
				want := exchange(t, p.model, request)[0]
				got := exchange(t, p.store, request)[0]
				if got != want {
					r.Fatalf("request %+v:\n got %+v\nwant %+v", request, got, want)
				}
				if got.Bucket != 0 {
					last[name] = got.Bucket
				}
				if got.State != "" {
					p.seen = append(p.seen, got.State)
				}
			},
			"advance": func(r *rapid.T) {
				p.advance(time.Duration(rapid.OneOf(
					rapid.Int64Range(0, 2000), rapid.Int64Range(0, 300_000), rapid.Int64Range(0, 90_000_000),
				).Draw(r, "µs"))*time.Microsecond, false)
			},
			"jump": func(r *rapid.T) {
				if rapid.IntRange(0, 4).Draw(r, "rarely") == 0 {
					p.advance(time.Duration(rapid.Int64Range(-7_200_000_000, 7_200_000_000).Draw(r, "µs"))*time.Microsecond, true)
				}
			},
			"flush": func(r *rapid.T) {
				if rapid.IntRange(0, 9).Draw(r, "rarely") == 0 {
					p.server.FlushAll()
					p.model.Flush()
				}
			},
		})
	})
}
