package overload

import (
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// loadFile is the part of a scene that is a load, as in load files of penstock simulate.
// What it does not have, such as attributes, scenes do without.
type loadFile struct {
	Streams []streamFile
	Servers []serverFile
	Signals []signalFile
}

type streamFile struct {
	Resource    string
	Rate        float64
	Shape       simulate.Shape
	Times       []duration
	From, Until duration
	Priority    priority
	Inbound     *bool    // as [simulate.Stream.Inbound]; here true if it is left out
	ServiceTime duration `yaml:"serviceTime"`
	Timeout     duration
	Fails       float64
	Retries     int
	RetryDelay  duration `yaml:"retryDelay"`
	Phases      []phaseFile
}

type phaseFile struct {
	Until       duration
	ServiceTime *duration `yaml:"serviceTime"`
	Fails       *float64
}

type serverFile struct {
	Name      string
	Resources oneOrMore
	Share     float64
	Guard     string
	Workers   int
	Unlimited bool
	Service   serviceFile
	Services  []resourceServiceFile
	TimeSlice duration `yaml:"timeSlice"`
	Quota     struct{ Time, Period duration }
	Slowdown  float64
	Changes   []changeFile
	Stalls    []struct{ At, For duration }
}

type serviceFile struct {
	Mean       duration
	Shape      simulate.Shape
	P99        duration
	SlowShare  float64 `yaml:"slowShare"`
	SlowFactor float64 `yaml:"slowFactor"`
}

type resourceServiceFile struct {
	Resources   oneOrMore
	Share       float64
	serviceFile `yaml:",inline"`
	Changes     []changeFile
}

type changeFile struct {
	At      duration
	Service serviceFile
}

type signalFile struct {
	At                    duration
	CPU, Load, Memory, GC *float64
	SchedulerDelay        *duration `yaml:"schedulerDelay"`
	Throttled             *float64
}

// duration is a time in seconds, or with a unit.
type duration time.Duration

// UnmarshalYAML reads a time.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	if seconds, err := strconv.ParseFloat(n.Value, 64); err == nil {
		*d = duration(seconds * float64(time.Second))
		return nil
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is no time: must be in seconds, such as 1.5, or have a unit, such as 500ms", n.Line, n.Value)
	}
	*d = duration(v)
	return nil
}

// priority is the name of one.
type priority rule.Priority

// UnmarshalYAML reads a priority.
func (p *priority) UnmarshalYAML(n *yaml.Node) error {
	of, ok := rule.ParsePriority(n.Value)
	if !ok {
		return fmt.Errorf("line %d: %q is no priority", n.Line, n.Value)
	}
	*p = priority(of)
	return nil
}

// oneOrMore is a list of names, or one alone.
type oneOrMore []string

// UnmarshalYAML reads names.
func (o *oneOrMore) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*o = []string{n.Value}
		return nil
	}
	var list []string
	err := n.Decode(&list)
	*o = list
	return err
}

// load returns the load, without a seed.
func (f loadFile) load() simulate.Load {
	var load simulate.Load
	for _, s := range f.Streams {
		load.Streams = append(load.Streams, s.stream())
	}
	for _, s := range f.Servers {
		load.Servers = append(load.Servers, s.server())
	}
	for _, s := range f.Signals {
		load.Signals = append(load.Signals, simulate.Signal{
			At: time.Duration(s.At), CPU: s.CPU, Load: s.Load, Memory: s.Memory, GC: s.GC,
			SchedulerDelay: (*time.Duration)(s.SchedulerDelay), Throttled: s.Throttled,
		})
	}
	return load
}

func (s streamFile) stream() simulate.Stream {
	stream := simulate.Stream{
		Resource: s.Resource, Rate: s.Rate, Shape: s.Shape, From: time.Duration(s.From), Until: time.Duration(s.Until),
		Priority: rule.Priority(s.Priority), Inbound: s.Inbound == nil || *s.Inbound, ServiceTime: time.Duration(s.ServiceTime),
		Timeout: time.Duration(s.Timeout), Fails: s.Fails, Retries: s.Retries, RetryDelay: time.Duration(s.RetryDelay),
	}
	for _, t := range s.Times {
		stream.Times = append(stream.Times, time.Duration(t))
	}
	for _, p := range s.Phases {
		stream.Phases = append(stream.Phases, simulate.Phase{
			Until: time.Duration(p.Until), ServiceTime: (*time.Duration)(p.ServiceTime), Fails: p.Fails,
		})
	}
	return stream
}

func (s serverFile) server() simulate.Server {
	server := simulate.Server{
		Name: s.Name, Resources: s.Resources, Share: s.Share, Guard: s.Guard, Workers: s.Workers, Unlimited: s.Unlimited,
		Service: s.Service.service(), TimeSlice: time.Duration(s.TimeSlice), Slowdown: s.Slowdown, Changes: changesOf(s.Changes),
		Quota: simulate.Quota{Time: time.Duration(s.Quota.Time), Period: time.Duration(s.Quota.Period)},
	}
	for _, r := range s.Services {
		server.Services = append(server.Services, simulate.ResourceService{
			Resources: r.Resources, Share: r.Share, Service: r.service(), Changes: changesOf(r.Changes),
		})
	}
	for _, stall := range s.Stalls {
		server.Stalls = append(server.Stalls, simulate.Stall{At: time.Duration(stall.At), For: time.Duration(stall.For)})
	}
	return server
}

func (s serviceFile) service() simulate.Service {
	return simulate.Service{
		Mean: time.Duration(s.Mean), Shape: s.Shape, P99: time.Duration(s.P99), SlowShare: s.SlowShare, SlowFactor: s.SlowFactor,
	}
}

func changesOf(list []changeFile) (changes []simulate.ServiceChange) {
	for _, c := range list {
		changes = append(changes, simulate.ServiceChange{At: time.Duration(c.At), Service: c.Service.service()})
	}
	return changes
}
