package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// TestMain runs the tests, or is one of the processes that they start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleInstance {
		if err := run(context.Background(), os.Args[1:], os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "fleet:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Processes of their own and a real server, which dies in one of the runs. Whatever the machine
// is busy with, no more may pass than the promise says, which is less than what calls demand and
// much less than if each process had a limit of its own.
func TestFourProcessesKeepOneLimit(t *testing.T) {
	if serverProgram() == "" {
		t.Skip("SKIPPED, no real server: " + errNoServer.Error())
	}
	const limit, instances = 1000, 4
	p := plan{instances: instances, duration: 4 * time.Second, seed: 1}
	var group []scenario
	for _, s := range p.scenarios() {
		switch s.String() {
		case "lease 1000/s 2 × even":
			group = append(group, s)
		case "lease 1000/s 2 × even, killed, onOutage last":
			f := *s.Fault
			f.at = time.Second
			s.Fault, s.Duration = &f, 6*time.Second
			group = append(group, s)
		}
	}
	require.Len(t, group, 2)

	results, err := measureGroup(t.Context(), group)
	require.NoError(t, err)
	for _, r := range results {
		t.Log(r.String())
		last := r.passed[len(r.passed)-1]
		// In any time T: the burst, what flows in during T and the life of a lease, and debts;
		// and for a server that lost its state once more the burst.
		assert.LessOrEqual(t, len(r.passed), int(limit*(last.Seconds()+1)+2*limit/10+instances*limit/100), "%s", r.String())
		assert.Greater(t, len(r.calls), len(r.passed), "%s: some calls are refused", r.String())
	}
	undisturbed, killed := results[0], results[1]
	assert.Positive(t, undisturbed.scripts)
	assert.Positive(t, undisturbed.perScript)
	assert.Positive(t, undisturbed.bytes)
	assert.Greater(t, undisturbed.decisions(), 1.0, "a lease is for several calls")
	assert.Positive(t, killed.outages)
	assert.GreaterOrEqual(t, killed.faultEnded-killed.faultBegan, 2*time.Second)
	assert.Len(t, tables(results), 3, "twice the limit, faults, goals")
}

func TestWholeMeasurementTakesLessThanEightMinutes(t *testing.T) {
	s, err := parseSettings(nil)
	require.NoError(t, err)
	for _, group := range groups(s.scenarios) {
		for _, one := range group {
			assert.Equal(t, group[0].Duration, one.Duration)
			assert.True(t, len(group) == 1 || one.isQuiet(), "%s disturbs others", one.String())
		}
	}
	assert.LessOrEqual(t, s.expected(), 8*time.Minute)
}

func TestRunsHaveDifferentNamesAndSeeds(t *testing.T) {
	s, err := parseSettings(nil)
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	names, seeds := make(map[string]bool), make(map[uint64]bool)
	for _, one := range s.scenarios {
		names[one.String()], seeds[one.Seed] = true, true
		sum := 0.0
		for i := range one.Instances {
			sum += one.rate(i)
		}
		assert.InEpsilon(t, one.Load*one.Limit, sum, 1e-9)
		require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{one.rule()}}), "%s", one.String())
	}
	assert.Len(t, names, len(s.scenarios))
	assert.Len(t, seeds, len(s.scenarios))
}

func TestBadSettingsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-instances=1": "-instances must be 2 to 100",
		"-for=1s":      "-for 3s or more",
		"-run=(":       "-run",
		"-run=nothing": `no run has a name that matches "nothing"`,
	} {
		_, err := parseSettings([]string{args})
		require.ErrorContains(t, err, want)
	}
}

func TestDocumentWithoutMarkersIsRefusedBeforeAnythingIsMeasured(t *testing.T) {
	document := t.TempDir() + "/fleet.md"
	require.NoError(t, os.WriteFile(document, []byte("no markers\n"), 0o600))
	err := run(t.Context(), []string{"-docs", document}, os.Stderr)
	require.ErrorContains(t, err, "<!-- bench:fleet -->")
}
