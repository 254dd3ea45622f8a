package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis"
)

// usage is what a run costs the server.
type usage struct {
	scripts   float64       // that ran for the limit; announcements too unless it is leased
	perScript time.Duration // that a script takes
	bytes     int64         // of the key of the limit

	perBusyScript time.Duration // that one takes when the server runs one after the other
}

// readUsage returns what the server has done since its statistics were reset. Instances also
// announce themselves by a script, once a second, and with [fleet.ModeShare] by that alone. It
// is the one that counts members, beside those for asking.
func readUsage(ctx context.Context, s *server, mode fleet.Mode) (usage, error) {
	var u usage
	text, err := s.info(ctx, "commandstats")
	if err != nil {
		return u, err
	}
	hashed, whole := commandStatistics(text, "evalsha"), commandStatistics(text, "eval")
	u.scripts = hashed.calls + whole.calls
	if mode == fleet.ModeLease || mode == fleet.ModeWindow {
		u.scripts -= commandStatistics(text, "zcard").calls
	}
	u.perScript = time.Duration(hashed.usecPerCall * float64(time.Microsecond))
	u.bytes, err = largestKey(ctx, s)
	return u, err
}

// addBusyScripts adds what a script takes when the server runs one after the other. Those of a
// run are up to ten times slower: a server that has slept finds nothing in the processor's caches.
func addBusyScripts(ctx context.Context, all []result) error {
	operations := map[fleet.Mode]fleet.Operation{fleet.ModeLease: fleet.LeaseBucket, fleet.ModeWindow: fleet.LeaseWindow}
	took := make(map[fleet.Mode]time.Duration)
	for i := range all {
		r := &all[i]
		operation, isLeased := operations[r.Mode]
		if !isLeased || !r.isOverload() {
			continue
		}
		if took[r.Mode] == 0 {
			var err error
			if took[r.Mode], err = busyScript(ctx, operation); err != nil {
				return err
			}
		}
		r.perBusyScript = took[r.Mode]
	}
	return nil
}

// busyScript returns how long a server runs a script that grants tokens. Ten limits at a time
// are asked for, as by an instance with ten limits.
func busyScript(ctx context.Context, operation fleet.Operation) (time.Duration, error) {
	s, err := startServer(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	store, err := redis.Connect(redis.Options{Addresses: []string{s.address()}, App: appName})
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	requests, replies := make([]fleet.Request, 10), make([]fleet.Reply, 10)
	for i := range requests {
		const limit = 1e9
		requests[i] = fleet.Request{
			Operation: operation, Want: 25, Quantum: 25, Keep: time.Second,
			Terms: fleet.Terms{Key: fmt.Sprintf("limit-%d", i), Limit: limit, Window: time.Second, Burst: limit / 10, Buckets: 10},
		}
	}
	for range 2000 {
		store.Exchange(ctx, requests, replies)
		for i := range replies {
			if replies[i].Err != nil {
				return 0, replies[i].Err
			}
		}
	}
	u, err := readUsage(ctx, s, fleet.ModeLease)
	return u.perScript, err
}

type statistics struct{ calls, usecPerCall float64 }

// commandStatistics finds what INFO says of a command; zeros if it says nothing:
//
//	cmdstat_get:calls=21,usec=175,usec_per_call=8.33,rejected_calls=0,failed_calls=0
func commandStatistics(text, command string) (s statistics) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_"+command+":")
		if !ok {
			continue
		}
		for field := range strings.SplitSeq(rest, ",") {
			name, value, _ := strings.Cut(field, "=")
			number, _ := strconv.ParseFloat(value, 64)
			switch name {
			case "calls":
				s.calls = number
			case "usec_per_call":
				s.usecPerCall = number
			}
		}
	}
	return s
}

// largestKey returns the bytes of the largest key of a limit; 0 if there is none.
func largestKey(ctx context.Context, s *server) (int64, error) {
	result, err := s.do(ctx, "KEYS", "{ps:"+appName+":*"+ruleName+"*")
	if err != nil {
		return 0, err
	}
	keys, err := result.AsStrSlice()
	if err != nil {
		return 0, err
	}
	var most int64
	for _, key := range keys {
		result, err := s.do(ctx, "MEMORY", "USAGE", key, "SAMPLES", "0")
		if err != nil {
			continue // the key has just ended
		}
		bytes, err := result.AsInt64()
		if err != nil {
			return 0, err
		}
		most = max(most, bytes)
	}
	return most, nil
}
