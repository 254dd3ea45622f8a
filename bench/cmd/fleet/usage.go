package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/fleet"
)

// usage is what a run costs the server.
type usage struct {
	scripts   float64       // that ran for the limit; announcements too unless it is leased
	perScript time.Duration // that a script takes
	bytes     int64         // of the key of the limit
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
