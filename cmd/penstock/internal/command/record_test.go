package command_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// recordingService returns the address of a service that records, its engine and clock. It has had 100 calls
// a second for ten seconds, of which it refused half.
func recordingService(t *testing.T, options inspect.Options) (address string, engine *core.Engine, c *clock.Virtual) {
	t.Helper()
	c = clock.NewVirtual(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC))
	engine = core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), Recorder: &core.Recorder{}})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Name: "orders", Resource: "orders", Limit: 50}}}))
	for i := range 1000 {
		guard, err := engine.Entry(t.Context(), "orders", core.Origin([]string{"web", "mobile\x1b[31m"}[i%2]))
		c.Advance(5 * time.Millisecond)
		if err == nil {
			guard.Exit()
		}
		c.Advance(5 * time.Millisecond)
	}
	server := httptest.NewServer(inspect.Handler(engine, options))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), engine, c
}

func TestRecordWritesTheCallsOfServices(t *testing.T) {
	t.Parallel()
	one, _, _ := recordingService(t, inspect.Options{Recordings: true, Name: "one"})
	two, _, _ := recordingService(t, inspect.Options{Recordings: true})
	refuses, _, _ := recordingService(t, inspect.Options{})
	file := filepath.Join(t.TempDir(), "friday.calls")
	got := user{}.run(t, "record", "--engine", one, "--engine", two, "--last", "5s", "-o", file)
	require.Zero(t, got.code, got.err)
	assert.Equal(t, file+": 1000 calls of 2 instances in 5s, 500 refused\n", got.out)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	got = user{}.run(t, "record", "--engine", one, "--engine", refuses, "--engine", "127.0.0.1:1", "--last", "5s", "-o", file)
	assert.Equal(t, 3, got.code)
	assert.Contains(t, got.err, "inspect.Options")
	assert.Contains(t, got.err, "127.0.0.1:1: ")
	content, err := os.Open(file)
	require.NoError(t, err)
	defer content.Close()
	of, err := recording.Read(content)
	require.NoError(t, err)
	assert.Len(t, of.Instances, 3)
	assert.Equal(t, "one", of.Instances[0].Name)
	assert.Contains(t, of.Instances[2].Error, "does the service run")

	got = user{}.run(t, "record", "--engine", refuses, "--last", "5s", "-o", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, 3, got.code)
	assert.Empty(t, got.out)
}

func TestRecordWaitsForTheCallsToCome(t *testing.T) {
	t.Parallel()
	address, engine, c := recordingService(t, inspect.Options{Recordings: true, Name: "one"})
	go func() {
		for c.Timers() == 0 { // until it records
			time.Sleep(time.Millisecond)
		}
		guard, err := engine.Entry(context.Background(), "orders")
		if assert.NoError(t, err) {
			guard.Exit()
		}
		c.Advance(time.Minute)
	}()
	file := filepath.Join(t.TempDir(), "friday.calls")
	got := user{}.run(t, "record", "--engine", address, "--for", "60s", "-o", file)
	require.Zero(t, got.code, got.err)
	assert.Equal(t, file+": 1 call of 1 instance in 1m0s, 0 refused\n", got.out)
}

func TestRecordTellsMistakesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-o f --engine a:1":                           "either --for",
		"-o f --engine a:1 --for 1s --last 1s":        "either --for",
		"--engine a:1 --for 1s":                       "-o FILE",
		"-o f --engine a:1 --for 11m":                 "at most 10m0s",
		"-o f --engine a:1 --for 1s --app shop":       "leave one out",
		"-o f --engine a:1 --for 1s --token-file /no": "--token-file",
	} {
		got := user{}.run(t, append([]string{"record"}, strings.Fields(args)...)...)
		assert.Equal(t, 2, got.code, args)
		assert.Contains(t, got.err, want, args)
	}
}

// recorded returns a file with the calls of a service, and a directory with rules.
func recorded(t *testing.T) (file, directory string) {
	t.Helper()
	address, _, _ := recordingService(t, inspect.Options{Recordings: true, Name: "one"})
	directory = tree(t, map[string]string{
		"new/orders.yaml": "flow:\n- {name: phones, resource: orders, limit: 10, origin: web}\n",
		"old/orders.yaml": "flow:\n- {name: orders, resource: orders, limit: 50}\n",
	})
	file = filepath.Join(directory, "friday.calls")
	got := user{}.run(t, "record", "--engine", address, "--last", "10m", "-o", file)
	require.Zero(t, got.code, got.err)
	return file, directory
}

func TestSimulateReplaysRecordedCalls(t *testing.T) {
	t.Parallel()
	file, directory := recorded(t)
	fresh, old := filepath.Join(directory, "new"), filepath.Join(directory, "old")
	got := user{}.run(t, "simulate", "--calls", file, "--rules", fresh, "--against", old)
	require.Zero(t, got.code, got.err)
	golden(t, "replay.txt", got.out, directory)

	got = user{}.run(t, "simulate", "--calls", file, "--rules", old, "--warm-up", "0", "-o", "json")
	require.Zero(t, got.code, got.err)
	var report simulate.ReplayReport
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	assert.Equal(t, 1000, report.Total.Calls)
	assert.Equal(t, 500, report.Total.Replayed.Refused)
	assert.Zero(t, report.Total.NewlyRefused+report.Total.NewlyPassed)
}

func TestSimulateTellsMistakesAboutRecordedCalls(t *testing.T) {
	t.Parallel()
	file, directory := recorded(t)
	fresh, damaged := filepath.Join(directory, "new"), filepath.Join(directory, "damaged")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(damaged, content[:len(content)/2], 0o600))
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{2, "contradict", []string{"--calls", file, "--load", "x"}},
		{2, "--against is for recorded calls", []string{"--load", "x", "--against", fresh}},
		{2, "no picture", []string{"--calls", file, "-o", "svg"}},
		{2, "--warm-up must be", []string{"--calls", file, "--warm-up", "9999h"}},
		{3, "no such file", []string{"--calls", filepath.Join(directory, "none")}},
		{3, "unexpected EOF", []string{"--calls", damaged}},
		{3, "is no recording of calls", []string{"--calls", filepath.Join(fresh, "orders.yaml")}},
	} {
		got := user{}.run(t, append([]string{"simulate", "--rules", fresh}, test.args...)...)
		assert.Equal(t, test.code, got.code, test.args)
		assert.Contains(t, got.err, test.want)
	}
}

func TestRecordFindsTheInstancesOfAnApplication(t *testing.T) {
	server, operator := startEtcd(t, etcdtest.Options{})
	startInstance(t, server, "silent")
	address, engine, _ := recordingService(t, inspect.Options{Recordings: true, Name: "busy"})
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, etcd.Prefix("shop"),
		etcd.Options{Instance: "busy", Inspect: address, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, engine.Follow(t.Context(), source))
	file := filepath.Join(t.TempDir(), "friday.calls")
	var got answer
	require.Eventually(t, func() bool {
		got = operator.run(t, "record", "--last", "5s", "-o", file)
		return got.out != ""
	}, eventTimeout, 10*time.Millisecond)
	assert.Equal(t, 3, got.code, "an instance is missing")
	assert.Equal(t, file+": 500 calls of 1 instance in 5s, 250 refused\n", got.out)
	assert.Contains(t, got.err, "silent reports no address")
	engine.Close()
}
