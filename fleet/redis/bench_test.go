//go:build unix

package redis

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/places"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

// BenchmarkExchange is one batch of requests to a real server on the same machine. It reports
// how long the server runs the script of a request.
func BenchmarkExchange(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	s := open(b, Options{Addresses: []string{server.Addr()}, App: "shop"})
	for operation, name := range []string{"LeaseBucket", "LeaseWindow", "AskFixedWindow", "AskSlidingLog", "AskTokenBucket", "AskThrottle"} {
		for limit, outcome := range map[float64]string{1e9: "granted", 1000: "refused"} {
			for _, n := range []int{1, 10, 100} {
				requests, replies := make([]fleet.Request, n), make([]fleet.Reply, n)
				for i := range requests {
					requests[i] = fleet.Request{
						Operation: fleet.Operation(operation), Want: 25, Quantum: 25, Keep: time.Second,
						Terms: fleet.Terms{
							Key:   fmt.Sprintf("flow/%s/partner-quota-%d", outcome, i),
							Limit: limit, Window: time.Second, Burst: limit / 10, Buckets: 10,
						},
					}
				}
				b.Run(fmt.Sprintf("%s/%s/%d", name, outcome, n), func(b *testing.B) {
					for range 50 { // until what is refused is refused
						exchange(b, s, requests...)
					}
					server.Do("CONFIG", "RESETSTAT")
					b.ReportAllocs()
					for b.Loop() {
						s.Exchange(b.Context(), requests, replies)
					}
					b.StopTimer()
					for _, reply := range replies {
						require.NoError(b, reply.Err)
					}
					b.ReportMetric(scriptTime(b, server), "script-µs")
				})
			}
		}
	}
}

// BenchmarkClaimPlaces is the script of places: claims that change nothing, and such by which places
// move from one instance to another.
func BenchmarkClaimPlaces(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	s := open(b, Options{Addresses: []string{server.Addr()}, App: "shop"})
	for _, instances := range []int64{8, 30, 100} {
		for name, changes := range map[string]int64{"same": 0, "changes": 1} {
			b.Run(fmt.Sprintf("%s/%d", name, instances), func(b *testing.B) {
				key := fmt.Sprintf("isolation/%s-%d", name, instances)
				requests := make([]fleet.Request, 100)
				for i := range requests {
					n := int64(i) % instances
					requests[i] = claimOf(key, places.Claim{
						Instance: fmt.Sprintf("instance-%02d-of-the-service", n), Limit: 5 * instances, Held: 5, InUse: 5, Want: 20, Life: time.Hour,
					})
				}
				sequence, replies := int64(0), make([]fleet.Reply, len(requests))
				claim := func() {
					for i := range requests {
						sequence++
						requests[i].Places.Sequence = sequence
						requests[i].Places.Held = 5 - changes*(sequence/int64(len(requests))%2)
						requests[i].Places.InUse = min(requests[i].Places.Held, 4)
					}
					s.Exchange(b.Context(), requests, replies)
				}
				claim()
				claim()
				server.Do("CONFIG", "RESETSTAT")
				for b.Loop() {
					claim()
				}
				b.StopTimer()
				require.NoError(b, replies[0].Err)
				b.ReportMetric(scriptTime(b, server), "script-µs")
			})
		}
	}
}

// BenchmarkClaimPlacesOfValues is the script of places of values, in batches of 64: each call takes a place or
// gives one back, by turns.
func BenchmarkClaimPlacesOfValues(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	s := open(b, Options{Addresses: []string{server.Addr()}, App: "shop"})
	requests := make([]fleet.Request, 64)
	claims := make([]places.ValueClaim, len(requests))
	for i := range requests {
		requests[i] = fleet.Request{Operation: fleet.ClaimValuePlaces, Terms: fleet.Terms{Key: "hotParam/a"}, Value: &claims[i]}
	}
	sequence, replies := int64(0), make([]fleet.Reply, len(requests))
	claim := func() {
		sequence++
		for i := range claims {
			claims[i] = places.ValueClaim{
				Instance: fmt.Sprintf("instance-%02d-of-the-service", i%8), Sequence: sequence, Value: fmt.Sprint("value-", i),
				Limit: 3, Want: sequence % 2, Life: time.Hour,
			}
		}
		s.Exchange(b.Context(), requests, replies)
	}
	claim()
	server.Do("CONFIG", "RESETSTAT")
	for b.Loop() {
		claim()
	}
	b.StopTimer()
	for _, reply := range replies {
		require.NoError(b, reply.Err)
	}
	b.ReportMetric(scriptTime(b, server), "script-µs")
}

var perCall = regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`)

func scriptTime(b *testing.B, server *redistest.Server) float64 {
	b.Helper()
	found := perCall.FindStringSubmatch(server.Info("commandstats"))
	require.NotNil(b, found)
	µs, err := strconv.ParseFloat(found[1], 64)
	require.NoError(b, err)
	return µs
}
