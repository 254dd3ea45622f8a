// Breaker shows a circuit breaker in a client: the service that is called fails for a
// while, the breaker opens and refuses calls at once, probes, and closes when the
// service has healed.
//
//	go run ./examples/breaker
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

const (
	every  = 20 * time.Millisecond // a call
	line   = 25                    // calls in a line of the timeline
	lasts  = 6 * time.Second
	breaks = 1500 * time.Millisecond
	heals  = 3500 * time.Millisecond
)

func main() {
	start := time.Now()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if since := time.Since(start); since > breaks && since < heals {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer service.Close()
	engine := core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), // the engine logs state changes too
		Observer: core.Observer{StateChanged: func(change core.StateChange) {
			fmt.Printf("%5.2f s  ── %s is %s, was %s ──\n", time.Since(start).Seconds(), change.Rule, change.To, change.From)
		}},
	})
	defer engine.Close()
	err := engine.Load(rules.Set{Breaker: []breaker.Rule{{
		Name: "pay-errors", Resource: "pay:charge", Threshold: 0.5, Window: time.Second, MinCalls: 10,
		OpenFor: 500 * time.Millisecond, MaxOpenFor: 2 * time.Second, Probes: 3,
	}}})
	if err != nil {
		log.Fatal(err) //nolint:gocritic // nothing is left behind
	}
	client := &http.Client{Transport: &nethttp.Transport{
		Engine: engine, Resource: func(*http.Request) string { return "pay:charge" },
	}}
	fmt.Printf("The service fails from %v to %v. A call every %v:  ✓ answered  ✗ failed  · refused by the breaker\n\n",
		breaks, heals, every)
	run(client, service.URL, start)
	seen := engine.Resource("pay:charge").Snapshot()
	fmt.Printf("\n%d calls reached the service, of which %d failed; the breaker refused %d.\n", seen.Passed, seen.Failed, seen.Blocked)
}

// run makes calls and prints them as a timeline.
func run(client *http.Client, url string, start time.Time) {
	var marks strings.Builder
	calls := 0
	for due := start; time.Since(start) < lasts; due = due.Add(every) {
		time.Sleep(time.Until(due))
		marks.WriteString(call(client, url))
		if calls++; calls%line == 0 {
			fmt.Printf("%5.2f s  %s\n", time.Since(start).Seconds(), marks.String())
			marks.Reset()
		}
	}
}

// call makes one call and returns its mark.
func call(client *http.Client, url string) string {
	response, err := client.Get(url)
	switch {
	case errors.Is(err, core.ErrBlocked):
		return "·"
	case err != nil:
		return "✗"
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode >= http.StatusInternalServerError {
		return "✗"
	}
	return "✓"
}
