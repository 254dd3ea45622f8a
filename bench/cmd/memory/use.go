package main

import (
	"time"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// use calls resources, so that they have statistics.
type use func(guards peer.Guards, time *clock.Virtual, resources []string) error

func calledOnce(guards peer.Guards, _ *clock.Virtual, resources []string) error {
	for _, resource := range resources {
		guards.Call(resource)
	}
	return nil
}

func withRule(guards peer.Guards, time *clock.Virtual, resources []string) error {
	if err := guards.Prepare(peer.RulesOn(resources, peer.Reject))(); err != nil {
		return err
	}
	return calledOnce(guards, time, resources)
}

// active calls each resource in every second of a minute, with response times from 1
// to 512 milliseconds.
func active(guards peer.Guards, virtual *clock.Virtual, resources []string) error {
	const responses = 10
	for second := range 60 {
		begin := virtual.Now()
		exits := make([][]func(), responses)
		for i, resource := range resources {
			exit, err := guards.Enter(resource)
			if err != nil {
				return err
			}
			response := (i + second) % responses
			exits[response] = append(exits[response], exit)
		}
		for response, done := range exits {
			virtual.Advance(begin.Add(time.Millisecond << response).Sub(virtual.Now()))
			for _, exit := range done {
				exit()
			}
		}
		virtual.Advance(begin.Add(time.Second).Sub(virtual.Now()))
	}
	return nil
}
