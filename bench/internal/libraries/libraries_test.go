package libraries_test

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/bench/internal/libraries"
	"github.com/penstock-go/penstock/internal/overload"
)

// TestCompare is the program of internal/overload with the libraries, if it gets arguments:
//
//	go test ./internal/libraries -run Compare -timeout 0 -args -- -run 'step|A1' -protect failsafe,bbr,latency
func TestCompare(t *testing.T) {
	if flag.NArg() == 0 {
		t.Skip("compares what the arguments after -args say")
	}
	require.NoError(t, run(t, flag.Args(), os.Stdout), "of the command line, or that goals were missed")
}

// The libraries are asked, their time passes as that of the simulation does, and bbr sees
// how busy the workers are.
func TestLibrariesLimitSimulatedCalls(t *testing.T) {
	scene := filepath.Join(t.TempDir(), "scene.yaml")
	require.NoError(t, os.WriteFile(scene, []byte(aScene), 0o600))
	var out strings.Builder
	err := run(t, []string{"-scenes", scene, "-protect", "failsafe,failsafe-endpoints,bbr,bbr-endpoints"}, &out)
	require.NoError(t, err, &out)
}

// aScene has fifty calls at once, and later more than the workers can do. The limit of failsafe is
// 20 at first: as long as its time stands still, three fifths are refused.
const aScene = `
title: "fifty calls at once, and a service that is short of workers from second 30 on"
duration: 70s
load:
  streams:
    - {resource: far, rate: 500}
    - {resource: busy, rate: 100}
    - {resource: busy, rate: 200, from: 30s}
  servers:
    - {name: far, resources: far, unlimited: true, service: {mean: 100ms}}
    - {name: workers, resources: busy, workers: 2, service: {mean: 10ms}}
goals:
  - {name: grows, class: far, refused: "<= 20%", from: 25s, until: 30s}
  - {name: limits, class: busy, refused: ">= 20%", from: 50s}
`

// run runs the program. Bubbles need a test.
func run(t *testing.T, args []string, out io.Writer) error {
	t.Helper()
	return overload.Run(t.Context(), args, out, libraries.All(func(run func()) {
		synctest.Test(t, func(*testing.T) { run() })
	})...)
}
