package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/places"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

func claimOf(key string, claim places.Claim) fleet.Request {
	return fleet.Request{Operation: fleet.ClaimPlaces, Terms: fleet.Terms{Key: key}, Places: &claim}
}

// The script of places does exactly what the model does, whatever is claimed by whom.
func TestPlacesScriptDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	rapid.Check(t, func(r *rapid.T) {
		p.reset()
		sequence := int64(0)
		grants := map[string]places.Grant{}
		limit := rapid.Int64Range(0, 20).Draw(r, "limit")
		few := rapid.Int64Range(0, 9)
		for range rapid.IntRange(1, 40).Draw(r, "claims") {
			key := rapid.SampledFrom([]string{"isolation/a", "isolation/a", "isolation/b"}).Draw(r, "key")
			instance := rapid.SampledFrom([]string{"one", "two", "three", "four", "five"}).Draw(r, "instance")
			if rapid.IntRange(0, 9).Draw(r, "changes") == 0 {
				limit = rapid.Int64Range(0, 20).Draw(r, "limit")
			}
			name := key + instance
			sequence++
			claim := places.Claim{
				Instance: instance, Sequence: sequence - rapid.SampledFrom([]int64{0, 0, 0, 0, 3}).Draw(r, "late"), Limit: limit,
				Held: grants[name].Held, Want: few.Draw(r, "want"), Spare: rapid.Int64Range(0, 2).Draw(r, "spare"),
				Life: places.FinalLife, Born: grants[name].Born, Number: grants[name].Number,
			}
			claim.Sequence = max(1, claim.Sequence)
			switch rapid.IntRange(0, 5).Draw(r, "kind") {
			case 0:
				claim.Held = few.Draw(r, "held")
				claim.InUse = few.Draw(r, "inUse")
			case 1:
				claim.Life, claim.InUse = 0, rapid.Int64Range(0, 1).Draw(r, "inUse")
			case 2:
				claim.InUse = claim.Held
			}
			want := exchange(t, p.model, claimOf(key, claim))[0]
			got := exchange(t, p.store, claimOf(key, claim))[0]
			if got != want {
				r.Fatalf("claim %+v:\n got %+v\nwant %+v\nhash %v", claim, got, want, p.hash(key))
			}
			if !got.Places.Late {
				grants[name] = got.Places
			}
			p.advance(time.Duration(rapid.OneOf(rapid.Int64Range(0, 2000), rapid.Int64Range(0, 300_000),
				rapid.Int64Range(0, 2_000_000)).Draw(r, "µs"))*time.Microsecond, false)
		}
	})
}

// hash is what the server has of the places of a limit.
func (p *pair) hash(key string) string {
	var all []string
	name := p.store.limitKey(key) + ":p"
	fields, _ := p.server.HKeys(name)
	for _, field := range fields {
		all = append(all, field+": "+p.server.HGet(name, field))
	}
	return strings.Join(all, "\n")
}

// On a real server: who gives places back has them granted to who wants them, and that one is told.
func TestRealServerTellsWhoWasGrantedPlaces(t *testing.T) {
	t.Parallel()
	server := redistest.Any(t)
	s := open(t, Options{Addresses: []string{server.Addr()}, App: fmt.Sprintf("places-%d", time.Now().UnixNano())})
	claimsAndHears(t, s)
}

// claimsAndHears has one instance get places that another one gives back, and hear of it.
func claimsAndHears(t *testing.T, s *Store) {
	t.Helper()
	told := make(chan string, 100)
	defer s.Listen("two", func(key string) {
		select {
		case told <- key:
		default:
		}
	})()
	sequence := int64(0)
	claim := func(instance string, held, want int64) places.Grant { // nothing if the server does not answer
		sequence++
		reply := exchange(t, s, claimOf("isolation/a", places.Claim{
			Instance: instance, Sequence: sequence, Limit: 5, Held: held, InUse: min(held, want), Want: want, Life: time.Second,
		}))[0]
		if reply.Err != nil {
			t.Log(reply.Err)
			return places.Grant{}
		}
		return reply.Places
	}
	// A server that has just started grants nothing at first, and the listener may not listen yet.
	require.Eventually(t, func() bool {
		claim("two", 0, 0)
		if claim("one", claim("one", 0, 5).Held, 5).Held != 5 {
			return false
		}
		if claim("two", 0, 2).Held != 0 {
			return false // the lease of the other one has ended: the machine is busy
		}
		claim("one", 3, 3)
		select {
		case key := <-told:
			return assert.Equal(t, "isolation/a", key)
		case <-time.After(100 * time.Millisecond):
			claim("one", 0, 0)
			return false
		}
	}, patience, time.Millisecond)
	second := claim("two", 0, 2)
	assert.Equal(t, int64(2), second.Held)
	assert.Positive(t, second.Number)
}

// A server that has started of late, and a caller that knows that there was a state: nothing is granted
// for a life, but what instances say that they have is theirs.
func TestRealServerThatHasLostPlacesLearnsThem(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	claim := places.Claim{Instance: "one", Sequence: 1, Limit: 5, Held: 3, InUse: 1, Want: 5, Life: time.Hour, Born: 1, Number: 7}
	reply := exchange(t, s, claimOf("isolation/a", claim))[0]
	require.NoError(t, reply.Err)
	assert.Equal(t, int64(3), reply.Places.Held)
	assert.Equal(t, int64(7), reply.Places.Number)

	left := server.Do("PTTL", s.limitKey("isolation/a")+":p").(int64)
	assert.Positive(t, left)
	bytes := server.Do("MEMORY", "USAGE", s.limitKey("isolation/a")+":p").(int64)
	t.Logf("%d bytes with one instance", bytes)
}

// The script of places of values does exactly what the model does, whatever is claimed by whom.
func TestValuePlacesScriptDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	rapid.Check(t, func(r *rapid.T) {
		p.reset()
		sequence := int64(0)
		grants := map[string]places.ValueGrant{}
		few := rapid.Int64Range(0, 4)
		for range rapid.IntRange(1, 40).Draw(r, "claims") {
			key := rapid.SampledFrom([]string{"hotParam/a/1", "hotParam/a/1", "hotParam/a/2"}).Draw(r, "key")
			instance := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(r, "instance")
			name := key + instance
			sequence++
			claim := places.ValueClaim{
				Instance: instance, Sequence: max(1, sequence-rapid.SampledFrom([]int64{0, 0, 0, 0, 3}).Draw(r, "late")),
				Value: rapid.SampledFrom([]string{"", "x", "x", "x", "y"}).Draw(r, "value"),
				Limit: rapid.Int64Range(1, 5).Draw(r, "limit"), InUse: few.Draw(r, "inUse"), Want: few.Draw(r, "want"),
				Life: places.FinalLife, Born: grants[name].Born,
				Number: grants[name].Number + rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 5_000_000}).Draw(r, "told, and lost"),
			}
			if claim.Value == "" && rapid.IntRange(0, 3).Draw(r, "leaves") == 0 {
				claim.Life = 0
			}
			request := func() fleet.Request {
				c := claim
				return fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: key}, Value: &c}
			}
			want := exchange(t, p.model, request())[0]
			got := exchange(t, p.store, request())[0]
			if got != want {
				r.Fatalf("claim %+v:\n got %+v\nwant %+v", claim, got, want)
			}
			if !got.Value.Late {
				grants[name] = got.Value
			}
			p.advance(time.Duration(rapid.OneOf(rapid.Int64Range(0, 2000), rapid.Int64Range(0, 300_000),
				rapid.Int64Range(0, 2_000_000)).Draw(r, "µs"))*time.Microsecond, false)
		}
	})
}

// A claim that comes late takes nothing from an instance that is silent for as long as it lives, and then tells
// of its calls.
func TestLateValueClaimTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	claim := func(c places.ValueClaim) {
		t.Helper()
		request := func() fleet.Request {
			of := c
			return fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: "hotParam/a/1"}, Value: &of}
		}
		assert.Equal(t, exchange(t, p.model, request())[0], exchange(t, p.store, request())[0])
	}
	claim(places.ValueClaim{Instance: "a", Sequence: 1, Value: "x", Limit: 2, Want: 1, Life: places.FinalLife})
	claim(places.ValueClaim{Instance: "b", Sequence: 5, Value: "x", Limit: 2, InUse: 1, Life: places.FinalLife})
	p.advance(places.FinalLife, false)
	claim(places.ValueClaim{Instance: "b", Sequence: 4, Value: "x", Limit: 2, Life: places.FinalLife})
	claim(places.ValueClaim{Instance: "a", Sequence: 2, InUse: 1}) // leaves, with a call under way
	claim(places.ValueClaim{Instance: "c", Sequence: 1, Value: "x", Limit: 2, Want: 1, Life: places.FinalLife})
}

// A store that has lost its state grants nothing until all have told what they have, also if the first one to
// come is an instance that leaves.
func TestStoreThatHasLostPlacesWaitsForTheOthersAlthoughOneLeaves(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for name, claims := range map[string]func() [3]fleet.Request{
		"of a rule": func() [3]fleet.Request {
			return [3]fleet.Request{
				claimOf("isolation/a", places.Claim{Instance: "a", Sequence: 9, Limit: 2, Born: 1}),
				claimOf("isolation/a", places.Claim{Instance: "b", Sequence: 1, Limit: 2, Want: 2, Life: places.FinalLife}),
				claimOf("isolation/a", places.Claim{Instance: "b", Sequence: 2, Limit: 2, Want: 2, Life: places.FinalLife}),
			}
		},
		"of a value": func() [3]fleet.Request {
			of := func(c places.ValueClaim) fleet.Request {
				return fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: "hotParam/a/1"}, Value: &c}
			}
			return [3]fleet.Request{
				of(places.ValueClaim{Instance: "a", Sequence: 9, Born: 1}),
				of(places.ValueClaim{Instance: "b", Sequence: 1, Value: "x", Limit: 2, Want: 2, Life: places.FinalLife}),
				of(places.ValueClaim{Instance: "b", Sequence: 2, Value: "x", Limit: 2, Want: 2, Life: places.FinalLife}),
			}
		},
	} {
		p.reset()
		one, two := claims(), claims()
		for i, had := range []int64{0, 0, 2} {
			if i == 2 {
				p.advance(places.FinalLife, false)
			}
			want, got := exchange(t, p.model, one[i])[0], exchange(t, p.store, two[i])[0]
			require.NoError(t, got.Err, name)
			assert.Equal(t, want, got, name)
			assert.Equal(t, had, got.Places.Held+got.Value.Granted, "%s, claim %d", name, i)
		}
	}
}
