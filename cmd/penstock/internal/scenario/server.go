package scenario

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/simulate"
)

// servers reads the servers of a load and notes where their fields stand.
func (r *reader) servers(n *yaml.Node, nested given) []simulate.Server {
	var list []simulate.Server
	for i, item := range items(n) {
		var s simulate.Server
		path := fmt.Sprintf("servers[%d]", i)
		found := r.mapping(item, "a server",
			field{"name", func(n *yaml.Node) { s.Name = r.text(n, "name") }},
			field{"resources", func(n *yaml.Node) { s.Resources = r.texts(n, "resources") }},
			field{"share", func(n *yaml.Node) { s.Share = r.share(n, "share") }},
			field{"guard", func(n *yaml.Node) { s.Guard = r.text(n, "guard") }},
			field{"workers", func(n *yaml.Node) { s.Workers = r.whole(n, "workers") }},
			field{"unlimited", func(n *yaml.Node) { s.Unlimited = r.boolean(n, "unlimited") }},
			field{"service", func(n *yaml.Node) { s.Service = r.service(n, path+".service", nested) }},
			field{"services", func(n *yaml.Node) { s.Services = r.services(n, path+".services", nested) }},
			field{"timeSlice", func(n *yaml.Node) { s.TimeSlice = r.positive(n, "timeSlice") }},
			field{"quota", func(n *yaml.Node) { s.Quota = r.quota(n, path+".quota", nested) }},
			field{"slowdown", func(n *yaml.Node) { s.Slowdown = r.number(n, "slowdown") }},
			field{"changes", func(n *yaml.Node) { s.Changes = r.changes(n, path+".changes", nested) }},
			field{"stalls", func(n *yaml.Node) { s.Stalls = r.stalls(n, path+".stalls", nested) }},
		)
		nested.add(path, item, found)
		list = append(list, s)
	}
	return list
}

// service reads how long a worker needs.
func (r *reader) service(n *yaml.Node, path string, nested given) simulate.Service {
	var s simulate.Service
	nested.add(path, n, r.mapping(n, "service", r.serviceFields(&s)...))
	return s
}

func (r *reader) serviceFields(s *simulate.Service) []field {
	return []field{
		{"mean", func(n *yaml.Node) { s.Mean = r.positive(n, "mean") }},
		{"shape", func(n *yaml.Node) { s.Shape = simulate.Shape(r.text(n, "shape")) }},
		{"p99", func(n *yaml.Node) { s.P99 = r.positive(n, "p99") }},
		{"slowShare", func(n *yaml.Node) { s.SlowShare = r.number(n, "slowShare") }},
		{"slowFactor", func(n *yaml.Node) { s.SlowFactor = r.number(n, "slowFactor") }},
	}
}

// services reads how long workers need for calls of some resources.
func (r *reader) services(n *yaml.Node, path string, nested given) []simulate.ResourceService {
	var list []simulate.ResourceService
	for i, item := range items(n) {
		var s simulate.ResourceService
		at := fmt.Sprintf("%s[%d]", path, i)
		fields := []field{
			{"resources", func(n *yaml.Node) { s.Resources = r.texts(n, "resources") }},
			{"share", func(n *yaml.Node) { s.Share = r.share(n, "share") }},
		}
		fields = append(fields, r.serviceFields(&s.Service)...)
		fields = append(fields, field{"changes", func(n *yaml.Node) { s.Changes = r.changes(n, at+".changes", nested) }})
		nested.add(at, item, r.mapping(item, "a service of resources", fields...))
		list = append(list, s)
	}
	return list
}

// share reads a share that is not 0, which would mean that it is left out.
func (r *reader) share(n *yaml.Node, field string) float64 {
	before := len(r.problems)
	v := r.number(n, field)
	if len(r.problems) == before && v == 0 {
		r.fail(placeOf(n), field, "is 0: must be more than 0 and at most 1")
	}
	return v
}

// changes reads how the service of a server changes.
func (r *reader) changes(n *yaml.Node, path string, nested given) []simulate.ServiceChange {
	var list []simulate.ServiceChange
	for i, item := range items(n) {
		var c simulate.ServiceChange
		at := fmt.Sprintf("%s[%d]", path, i)
		found := r.mapping(item, "a change",
			field{"at", func(n *yaml.Node) { c.At = r.duration(n, "at") }},
			field{"service", func(n *yaml.Node) { c.Service = r.service(n, at+".service", nested) }},
		)
		nested.add(at, item, found)
		list = append(list, c)
	}
	return list
}

// stalls reads when a server stands still.
func (r *reader) stalls(n *yaml.Node, path string, nested given) []simulate.Stall {
	var list []simulate.Stall
	for i, item := range items(n) {
		var s simulate.Stall
		found := r.mapping(item, "a stall",
			field{"at", func(n *yaml.Node) { s.At = r.duration(n, "at") }},
			field{"for", func(n *yaml.Node) { s.For = r.positive(n, "for") }},
		)
		nested.add(fmt.Sprintf("%s[%d]", path, i), item, found)
		list = append(list, s)
	}
	return list
}

// quota reads how much processor time a server has.
func (r *reader) quota(n *yaml.Node, path string, nested given) simulate.Quota {
	var q simulate.Quota
	found := r.mapping(n, "a quota",
		field{"time", func(n *yaml.Node) { q.Time = r.positive(n, "time") }},
		field{"period", func(n *yaml.Node) { q.Period = r.positive(n, "period") }},
	)
	nested.add(path, n, found)
	return q
}

// signals reads what the signals of the system show.
func (r *reader) signals(n *yaml.Node, nested given) []simulate.Signal {
	var list []simulate.Signal
	for i, item := range items(n) {
		var s simulate.Signal
		found := r.mapping(item, "a signal",
			field{"at", func(n *yaml.Node) { s.At = r.duration(n, "at") }},
			field{"cpu", func(n *yaml.Node) { s.CPU = new(r.number(n, "cpu")) }},
			field{"memory", func(n *yaml.Node) { s.Memory = new(r.number(n, "memory")) }},
			field{"load", func(n *yaml.Node) { s.Load = new(r.number(n, "load")) }},
			field{"schedulerDelay", func(n *yaml.Node) { s.SchedulerDelay = new(r.duration(n, "schedulerDelay")) }},
			field{"gc", func(n *yaml.Node) { s.GC = new(r.number(n, "gc")) }},
			field{"throttled", func(n *yaml.Node) { s.Throttled = new(r.number(n, "throttled")) }},
		)
		nested.add(fmt.Sprintf("signals[%d]", i), item, found)
		list = append(list, s)
	}
	return list
}

// texts reads a list of names, or one alone.
func (r *reader) texts(n *yaml.Node, field string) []string {
	var list []string
	for _, item := range items(n) {
		list = append(list, r.text(item, field))
	}
	return list
}
