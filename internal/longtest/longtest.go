// Package longtest chooses how much tests do that could go on for hours: all of it if the variable
// PENSTOCK_LONG of the environment is set, as make long does, else what finds most in seconds.
package longtest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Enabled says whether tests are to do all that they can.
func Enabled() bool { return os.Getenv("PENSTOCK_LONG") != "" }

// Of returns what a test is to do: usually, or if it is to do all that it can.
func Of[T any](usual, all T) T {
	if Enabled() {
		return all
	}
	return usual
}

// Short returns what a test is to do: usually, or if tests are to be short, which those under the race
// detector are.
func Short[T any](usual, short T) T {
	if testing.Short() {
		return short
	}
	return usual
}

// Skip leaves a test out unless tests are to do all that they can. What it proves has to be proved
// by a shorter test, too, which the text names.
func Skip(t testing.TB, shorter string) {
	t.Helper()
	if !Enabled() {
		t.Skip("long: run make long; shorter: " + shorter)
	}
}

// Checks makes package rapid try each property of a test binary so many times instead of a hundred,
// unless tests are to do all that they can or the command line says how many times. It is for
// TestMain, before the tests run, and panics if no test uses rapid.
func Checks(usually int) {
	if Enabled() {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(usually)); err != nil {
		panic("longtest: " + err.Error())
	}
}

// ShortChecks is Checks for tests that are to be short, which those under the race detector are:
// properties mostly have one goroutine.
func ShortChecks(usually int) {
	flag.Parse()
	if testing.Short() {
		Checks(usually)
		flag.Parse() // what the command line says
	}
}

// AtOnce lets so many parallel tests of a test binary run at once, instead of one for each processor,
// unless the command line says how many. It is for TestMain, where tests wait more than they compute.
func AtOnce(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic("longtest: " + err.Error())
	}
}
