// Fault shows what slow payments do to a client before they are slow by themselves: a fault
// rule of the payment service delays a fifth of the calls, the timeout of the client and its
// circuit breaker have to cope, and an operator stops the fault.
//
//	go run ./examples/fault
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
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

const (
	every   = 20 * time.Millisecond // a call
	line    = 25                    // calls in a line of the timeline
	lasts   = 6 * time.Second
	begins  = 1500 * time.Millisecond // the fault
	stops   = 3500 * time.Millisecond // the operator stops it
	timeout = 50 * time.Millisecond   // of the client
	pay     = "pay:charge"
)

func main() {
	start := time.Now()
	say := func(text string) { fmt.Printf("%5.2f s  ── %s ──\n", time.Since(start).Seconds(), text) }

	// The payment service, which is quick.
	service := newEngine(func(core.StateChange) {})
	defer service.Close()
	guarded := nethttp.Middleware(service, nethttp.Options{Resource: func(*http.Request) string { return pay }})
	server := httptest.NewServer(guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()

	// Its client.
	caller := newEngine(func(c core.StateChange) { say(fmt.Sprintf("the client's breaker is %s, was %s", c.To, c.From)) })
	defer caller.Close()
	load(caller, rules.Set{Breaker: []breaker.Rule{{
		Resource: pay, Threshold: 0.1, Window: time.Second, MinCalls: 10, OpenFor: 500 * time.Millisecond, Probes: 5,
	}}})
	client := &http.Client{Timeout: timeout, Transport: &nethttp.Transport{
		Engine: caller, Resource: func(*http.Request) string { return pay },
	}}

	time.AfterFunc(begins, func() {
		say("20 % of the payments take 300 ms longer")
		load(service, rules.Set{Fault: []fault.Rule{{
			Name: "slow-payments", Resource: pay, Percent: 20, Delay: 300 * time.Millisecond, Until: time.Now().Add(time.Minute),
		}}})
	})
	time.AfterFunc(stops, func() {
		say("an operator turns all faults off")
		if err := service.Control(core.Scope{Kind: rules.KindFault}, fault.Off); err != nil {
			log.Print(err)
		}
	})
	fmt.Printf("A call every %v, with a timeout of %v:  ✓ answered  ✗ timed out  · refused by the breaker\n\n", every, timeout)
	run(client, server.URL, start)
	seen := caller.Resource(pay).Snapshot()
	fmt.Printf("\n%d calls were sent, of which %d timed out; the breaker refused %d.\n", seen.Passed, seen.Failed, seen.Blocked)
}

func newEngine(changed func(core.StateChange)) *core.Engine {
	return core.New(core.Config{
		Logger:   slog.New(slog.DiscardHandler), // the engine logs state changes too
		Observer: core.Observer{StateChanged: changed},
	})
}

func load(engine *core.Engine, set rules.Set) {
	if err := engine.Load(set); err != nil {
		log.Fatal(err)
	}
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
	return "✓"
}
