package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
)

// The test program is also the instances that the show starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleInstance {
		if err := program(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// quickShow runs a show that takes half the time. How much passes in which second depends on how busy the machine is,
// and is only logged: a process that is stopped for a second makes its calls later.
func quickShow(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), &out, schedule(true))
	t.Log(out.String(), err)
	if !errors.Is(err, errSeen) {
		require.NoError(t, err)
	}
	return out.String()
}

func TestProcessesShareALimitWithAndWithoutTheServer(t *testing.T) {
	out := quickShow(t)
	assert.Contains(t, out, "status of instance-1: connected")
	assert.Contains(t, out, "the backend of the fleet does not answer")
	assert.Contains(t, out, "the backend of the fleet answers again")
}

func TestProcessesShareTheServerInThisProcess(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // there is no server program
	out := quickShow(t)
	assert.Contains(t, out, "miniredis")
	assert.Contains(t, out, "the backend of the fleet answers again")
}

func TestInterruptedShowEndsWithItsProcesses(t *testing.T) {
	server, err := startServer(t.Context())
	require.NoError(t, err)
	defer server.stop()
	f, err := startFleet(t.Context(), server.address())
	require.NoError(t, err)
	defer f.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out strings.Builder
	require.ErrorIs(t, show(ctx, &out, schedule(false), server, f), context.DeadlineExceeded)
	f.stop()
	for _, p := range f.all {
		<-p.ended
	}
}

func TestStatusTellsOfAnOutage(t *testing.T) {
	s := &core.FleetStatus{Status: fleet.Status{
		Connected: true, Instances: 4, Latency: 300 * time.Microsecond, Batches: 7,
		Limits: []fleet.LimitStatus{{Key: "flow/partner-quota", Mode: fleet.ModeLease, OnOutage: fleet.OutageLast, Demand: 75, Granted: 25, Passed: 24.6}},
	}}
	assert.Equal(t, "connected, 4 instances, answers take 300µs, 7 batches sent; "+
		"flow/partner-quota: mode lease, demand 75/s, granted 25/s, passed 25/s", describe(s))
	s.Connected, s.Limits[0].Outage = false, true
	assert.Equal(t, "not connected, 4 instances, answers take 300µs, 7 batches sent; "+
		"flow/partner-quota: mode lease, demand 75/s, granted 25/s, passed 25/s, outage: goes on with onOutage last", describe(s))
}

func TestSummarySaysWhetherTheLimitWasKept(t *testing.T) {
	of := func(perSecond int) *counts {
		c, start := &counts{}, time.Now()
		c.begin(start)
		for i := range 6 {
			at := start.Add(time.Duration(i) * time.Second)
			for range perSecond {
				c.add(at, i%instances, true)
			}
			c.add(at, 0, false)
		}
		return c
	}
	p := schedule(true)
	var out strings.Builder
	require.NoError(t, summarize(&out, p, of(int(limit))))
	assert.Contains(t, out.String(), "before:             200 calls passed in 2 s: 100 % of the limit")
	require.ErrorContains(t, summarize(&out, p, of(3*int(limit))), "not what the limit promises: before: 600 calls passed")
	require.ErrorContains(t, summarize(&out, p, of(0)), "without a server: no call passed")
}
