package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// patience is how long clients wait for an answer.
const patience = 200 * time.Millisecond

// meanService is the mean service time.
const meanService = 10 * time.Millisecond

// service is what serves requests.
type service struct {
	name    string
	workers int           // requests served at once; of a computing service its processors
	compute bool          // rather than wait
	quota   time.Duration // of each quotaPeriod in which the service may compute; 0: all of it
	rule    string        // the document of its rule
}

// quotaPeriod is the usual period of CPU quotas.
const quotaPeriod = 100 * time.Millisecond

// timeSlice is how long Go lets one goroutine compute while others wait.
const timeSlice = 10 * time.Millisecond

func services() []service {
	// The usual limit at the start is far too high for one processor.
	const shed, shedOfOne = "adaptive: [{name: shed}]", "adaptive: [{name: shed, initialLimit: 4}]"
	return []service{
		{name: "sleep", workers: 8, rule: shed},
		{name: "cpu", workers: 1, compute: true, rule: shedOfOne},
		{name: "quota", workers: 1, compute: true, quota: quotaPeriod / 2, rule: shedOfOne},
	}
}

func servicesNamed(list string) (found []service, err error) {
	for name := range strings.SplitSeq(list, ",") {
		of, ok := serviceNamed(name)
		if !ok {
			return nil, fmt.Errorf("-services: there is no %q: choose of sleep, cpu and quota", name)
		}
		found = append(found, of)
	}
	return found, nil
}

func serviceNamed(name string) (service, bool) {
	for _, of := range services() {
		if of.name == name {
			return of, true
		}
	}
	return service{}, false
}

// outcome is what clients got in the measured part of a load.
type outcome struct {
	Offered float64 // requests a second
	Goodput float64 // requests a second that were answered in time
	Refused float64 // share of the requests
	P99     float64 // seconds that 99 of 100 answered requests took

	// Of a generator: the share of its processor that it used, and how many seconds
	// late it sent 99 of 100 requests at the most. Of the server: the processor time that
	// it used in a second.
	GeneratorCPU, Lag, ServerCPU float64
}

// Simulations are longer than measurements, which costs little.
const (
	simulatedWarmUp = 15 * time.Second
	simulated       = 120 * time.Second
)

// simulateService simulates a service with the capacity that was measured.
func simulateService(ctx context.Context, of service, capacity, load float64) (outcome, error) {
	set, err := rules.Parse("overload.yaml", []byte(of.rule))
	if err != nil {
		return outcome{}, err
	}
	server := simulate.Server{
		Resources: []string{resource}, Workers: of.workers, Service: simulate.Service{Shape: simulate.Exponential},
	}
	processors := float64(of.workers)
	if of.compute {
		server.TimeSlice = timeSlice
	}
	if of.quota > 0 {
		server.Quota = simulate.Quota{Time: of.quota, Period: quotaPeriod}
		processors = of.quota.Seconds() / quotaPeriod.Seconds()
	}
	server.Service.Mean = time.Duration(processors / capacity * float64(time.Second))
	var recorded record
	_, err = simulate.Run(ctx, set, simulate.Load{
		Seed: 1,
		Streams: []simulate.Stream{{
			Resource: resource, Rate: load * capacity, Shape: simulate.Poisson, Inbound: true, Timeout: patience,
		}},
		Servers: []simulate.Server{server},
	}, simulate.Options{Duration: simulatedWarmUp + simulated, OnEvent: func(e simulate.Event) {
		if e.T < simulatedWarmUp.Seconds() {
			return
		}
		took := e.Wait
		if e.End != nil {
			took = *e.End - e.T
		}
		recorded.add(took, e.Outcome == simulate.Block, e.End != nil && !e.Failed && took <= patience.Seconds())
	}})
	return recorded.outcome(simulated), err
}
