package simulate

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

func (l Load) validateServers(check checker) {
	names := make(map[string]bool)
	for i, s := range l.Servers {
		at := func(field string) string { return fmt.Sprintf("servers[%d].%s", i, field) }
		check(len(s.Name) <= rule.MaxNameLength && utf8.ValidString(s.Name), at("name"),
			"is %.60q: must be at most %d bytes of UTF-8", s.Name, rule.MaxNameLength)
		check(s.Name == "" || !names[s.Name], at("name"), "is %q, as that of a server before it: give one of them another", s.Name)
		names[s.Name] = true
		check(len(s.Resources) > 0, at("resources"), "is missing: name the resources that the server serves")
		validatePatterns(s.Resources, at("resources"), check)
		check(s.Slowdown >= 0 && s.Slowdown <= maxSlowdown, at("slowdown"), "is %v: must be from 0 to %d", s.Slowdown, maxSlowdown)
		check(s.Share >= 0 && s.Share <= 1, at("share"), "is %v: must be more than 0 and at most 1", s.Share)
		check(len(s.Guard) <= rule.MaxNameLength && utf8.ValidString(s.Guard), at("guard"),
			"is %.60q: must be at most %d bytes of UTF-8", s.Guard, rule.MaxNameLength)
		s.validateWorkers(at, check)
		s.validateServices(at, check)
		s.validateStalls(at, check)
		s.validateTimeSlice(at, check)
	}
}

func (s Server) validateWorkers(at func(string) string, check checker) {
	if !s.Unlimited {
		check(s.Workers >= 1 && s.Workers <= maxWorkers, at("workers"), "is %d: must be from 1 to %d", s.Workers, maxWorkers)
		return
	}
	const remedy = "has no effect: calls of an unlimited server never wait for a worker; remove one of the two"
	check(s.Workers == 0, at("workers"), remedy)
	check(s.Slowdown == 0, at("slowdown"), remedy)
	check(s.TimeSlice == 0, at("timeSlice"), remedy)
}

func (s Server) validateServices(at func(string) string, check checker) {
	if s.Service != (Service{}) || len(s.Services) == 0 {
		check(s.Service.Mean != 0, at("service.mean"), "is missing: say how long a worker needs for a call")
		s.Service.validate(at("service"), check)
		s.Service.validateChanges(s.Changes, at, check)
	} else {
		check(len(s.Changes) == 0, at("changes"), "has no effect: there is no service that it changes; give one, or give the changes of services")
	}
	for i, r := range s.Services {
		at := func(field string) string { return at(fmt.Sprintf("services[%d].%s", i, field)) }
		check(len(r.Resources) > 0, at("resources"), "is missing: name the resources whose calls take this time")
		validatePatterns(r.Resources, at("resources"), check)
		check(r.Share >= 0 && r.Share <= 1, at("share"), "is %v: must be more than 0 and at most 1", r.Share)
		check(r.Service.Mean != 0, at("mean"), "is missing: say how long a worker needs for a call")
		r.Service.validate(strings.TrimSuffix(at(""), "."), check)
		r.Service.validateChanges(r.Changes, at, check)
	}
}

// validatePatterns checks the names and globs of resources.
func validatePatterns(patterns []string, field string, check checker) {
	for _, of := range patterns {
		_, err := match.Compile(of)
		var fault *match.Error
		if errors.As(err, &fault) {
			check(false, field, "has %s", fault.Fault())
		}
	}
}

// validate checks a service whose mean may be left out.
func (s Service) validate(field string, check checker) {
	check(s.Mean >= 0 && s.Mean <= MaxDuration, field+".mean", "is %v: must be longer than 0s and at most %v", s.Mean, MaxDuration)
	switch s.Shape {
	case Lognormal:
		if s.P99 == 0 {
			check(false, field+".p99", "is missing: a lognormal service time needs the time that 99 of 100 calls stay within")
		} else {
			check(s.P99 > s.Mean && float64(s.P99) <= maxTail*float64(s.Mean), field+".p99",
				"is %v: must be more than the mean (%v) and at most %d times as much", s.P99, s.Mean, maxTail)
		}
	case Bimodal:
		check(s.SlowShare > 0 && s.SlowShare < 1, field+".slowShare",
			"is %v: a bimodal service time needs the share of calls that are slow, between 0 and 1", s.SlowShare)
		check(s.SlowFactor > 1 && s.SlowFactor <= maxSlowFactor, field+".slowFactor",
			"is %v: a bimodal service time needs how many times as long slow calls take, more than 1 and at most %d", s.SlowFactor, maxSlowFactor)
	case "", Constant, Exponential:
	default:
		check(false, field+".shape", "is %.60q: must be %q, %q, %q or %q", s.Shape, Constant, Exponential, Lognormal, Bimodal)
		return
	}
	const noEffect = "has no effect: only a %s service time has one; remove it, or set shape: %[1]s"
	check(s.P99 == 0 || s.Shape == Lognormal, field+".p99", noEffect, Lognormal)
	check(s.SlowShare == 0 || s.Shape == Bimodal, field+".slowShare", noEffect, Bimodal)
	check(s.SlowFactor == 0 || s.Shape == Bimodal, field+".slowFactor", noEffect, Bimodal)
}

func (s Server) validateStalls(at func(string) string, check checker) {
	before := time.Duration(0)
	for i, stall := range s.Stalls {
		field := fmt.Sprintf("stalls[%d].", i)
		check(stall.At >= 0 && stall.At <= MaxDuration, at(field+"at"), "is %v: must be from 0s to %v", stall.At, MaxDuration)
		check(stall.For > 0 && stall.For <= MaxDuration, at(field+"for"), "is %v: must be longer than 0s and at most %v", stall.For, MaxDuration)
		check(stall.At >= before, at(field+"at"), "is %v: must not be before the stall before it is over (%v)", stall.At, before)
		before = max(before, stall.At+stall.For)
	}
}

func (s Server) validateTimeSlice(at func(string) string, check checker) {
	check(s.TimeSlice == 0 || s.TimeSlice >= minTimeSlice && s.TimeSlice <= maxTimeSlice,
		at("timeSlice"), "is %v: must be from %v to %v, or be left out", s.TimeSlice, minTimeSlice, maxTimeSlice)
	q := s.Quota
	if !q.present() {
		return
	}
	check(s.TimeSlice != 0, at("timeSlice"), "is missing: calls under a quota share it in time slices, in Go of 10ms")
	check(q.Period >= minQuotaTime && q.Period <= maxQuotaPeriod,
		at("quota.period"), "is %v: must be from %v to %v", q.Period, minQuotaTime, maxQuotaPeriod)
	check(q.Time >= minQuotaTime, at("quota.time"), "is %v: must be at least %v", q.Time, minQuotaTime)
	if all := time.Duration(s.Workers) * q.Period; all > 0 {
		check(q.Time < all, at("quota.time"), "is %v, which has no effect: must be less than %v, which all workers have in a period", q.Time, all)
	}
}

// validateChanges checks the changes of a service.
func (s Service) validateChanges(changes []ServiceChange, at func(string) string, check checker) {
	for i, c := range changes {
		field := fmt.Sprintf("changes[%d].", i)
		check(c.At >= 0 && c.At <= MaxDuration, at(field+"at"), "is %v: must be from 0s to %v", c.At, MaxDuration)
		check(i == 0 || c.At > changes[i-1].At, at(field+"at"), "is %v: must be later than the change before it", c.At)
		check(c.Service != Service{}, at(field+"service"), "is missing: say what service is like from then on")
		s = c.Service.after(s)
		s.validate(at(field+"service"), check)
	}
}

// validateServed checks which streams are served by which servers.
func (l Load) validateServed(faults *Faults) {
	const remedy = "the calls are served by %s: remove it, or take the resource from the server"
	stages := stagesOf(l)
	for i, stream := range l.Streams {
		visited := stages[stream.Resource]
		if len(visited) == 0 {
			continue
		}
		by := fmt.Sprintf("servers[%d] (%s)", visited[0].server, l.Servers[visited[0].server].Name)
		faults.check(stream.ServiceTime == 0, i, "serviceTime", "has no effect: "+remedy, by)
		for p, phase := range stream.Phases {
			faults.check(phase.ServiceTime == nil, i, fmt.Sprintf("phases[%d].serviceTime", p), "has no effect: "+remedy, by)
		}
	}
	for j := range l.Servers {
		l.validateUsed(j, stages, faults)
	}
}

// validateUsed checks that there is use for a server and for each of its services, and that
// it has a service for each of its resources.
func (l Load) validateUsed(server int, stages map[string][]stage, faults *Faults) {
	s := l.Servers[server]
	at := func(field string) string { return fmt.Sprintf("servers[%d].%s", server, field) }
	used := make([]string, len(s.Services)+1) // a resource for which each service is
	for name, visited := range stages {
		for _, stage := range visited {
			if stage.server == server && (used[stage.service] == "" || name < used[stage.service]) {
				used[stage.service] = name
			}
		}
	}
	faults.check(len(s.Resources) == 0 || strings.Join(used, "") != "", wholeLoad, at("resources"),
		"match no resource of the load: name one that a stream calls")
	if len(s.Services) == 0 || strings.Join(used, "") == "" {
		return
	}
	faults.check(used[0] == "" || s.Service != (Service{}), wholeLoad, at("service"),
		"is missing: none of the services is for calls of %q; give one that is, or a service for all others", used[0])
	for i, r := range s.Services {
		faults.check(len(r.Resources) == 0 || used[i+1] != "", wholeLoad, at(fmt.Sprintf("services[%d].resources", i)),
			"match no resource that the server serves and that no services before them match")
	}
}

func (l Load) validateSignals(check checker) {
	for i, s := range l.Signals {
		at := func(field string) string { return fmt.Sprintf("signals[%d].%s", i, field) }
		check(s.At >= 0 && s.At <= MaxDuration, at("at"), "is %v: must be from 0s to %v", s.At, MaxDuration)
		check(i == 0 || s.At > l.Signals[i-1].At, at("at"), "is %v: must be later than the one before it", s.At)
		check(s != Signal{At: s.At}, at("cpu"), "is missing: give cpu, load, memory, schedulerDelay, gc or throttled")
		for _, v := range []struct {
			field string
			value *float64
			most  float64
		}{{"cpu", s.CPU, 1}, {"load", s.Load, 1e6}, {"memory", s.Memory, 1}, {"gc", s.GC, 1}, {"throttled", s.Throttled, 1}} {
			if v.value != nil {
				check(*v.value >= 0 && *v.value <= v.most, at(v.field), "is %v: must be from 0 to %v", *v.value, v.most)
			}
		}
		if v := s.SchedulerDelay; v != nil {
			check(*v >= 0 && *v <= MaxDuration, at("schedulerDelay"), "is %v: must be from 0s to %v", *v, MaxDuration)
		}
	}
}
