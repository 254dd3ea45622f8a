package bench_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

func TestMain(m *testing.M) {
	flag.Parse()
	stop, err := peer.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if flag.Lookup("test.bench").Value.String() != "" {
		fmt.Println("environment:", report.Environment(command())) // kept with the results
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// command returns what the makefile says that it was called with, or the command line with what was
// asked of the benchmarks.
func command() string {
	if line := os.Getenv("BENCHCOMMAND"); line != "" {
		return line
	}
	line := "go test"
	for _, name := range []string{"bench", "benchmem", "benchtime", "count", "cpu"} {
		if f := flag.Lookup("test." + name); f.Value.String() != f.DefValue {
			line += " -" + name + "=" + f.Value.String()
		}
	}
	return line
}
