package simulate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestMistakesInAStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", rule.MaxNameLength+1)
	valid := func(change func(s *simulate.Stream)) simulate.Stream {
		s := simulate.Stream{Resource: "r", Rate: 1, Until: time.Second}
		change(&s)
		return s
	}
	tests := map[string]struct {
		change  func(s *simulate.Stream)
		field   string
		message string
	}{
		"no resource":         {func(s *simulate.Stream) { s.Resource = "" }, "resource", "is missing"},
		"long resource":       {func(s *simulate.Stream) { s.Resource = long }, "resource", "the most is 1024"},
		"resource not UTF-8":  {func(s *simulate.Stream) { s.Resource = "a\xff" }, "resource", "must be UTF-8"},
		"long origin":         {func(s *simulate.Stream) { s.Origin = long }, "origin", "the most is 1024"},
		"origin not UTF-8":    {func(s *simulate.Stream) { s.Origin = "\xff" }, "origin", "must be UTF-8"},
		"no rate":             {func(s *simulate.Stream) { s.Rate = 0 }, "rate", "is missing"},
		"negative rate":       {func(s *simulate.Stream) { s.Rate = -1 }, "rate", "is -1: must be more than 0"},
		"rate not a number":   {func(s *simulate.Stream) { s.Rate = math.NaN() }, "rate", "is NaN"},
		"endless rate":        {func(s *simulate.Stream) { s.Rate = math.Inf(1) }, "rate", "is +Inf"},
		"rate too high":       {func(s *simulate.Stream) { s.Rate = 2e9 }, "rate", "at most 1000000000"},
		"unknown shape":       {func(s *simulate.Stream) { s.Shape = "square" }, "shape", `must be "even" or "poisson"`},
		"negative from":       {func(s *simulate.Stream) { s.From = -1 }, "from", "must be from 0s"},
		"from beyond the end": {func(s *simulate.Stream) { s.From = 2000 * time.Hour; s.Until = 0 }, "from", "to 1080h0m0s"},
		"until before from":   {func(s *simulate.Stream) { s.From = time.Second }, "until", "later than from (1s)"},
		"negative until":      {func(s *simulate.Stream) { s.Until = -time.Second }, "until", "is -1s"},
		"until too late":      {func(s *simulate.Stream) { s.Until = 2000 * time.Hour }, "until", "at most 1080h0m0s"},
		"negative tokens":     {func(s *simulate.Stream) { s.Tokens = -1 }, "tokens", "is -1: must be from 1 to 2147483647"},
		"too many tokens":     {func(s *simulate.Stream) { s.Tokens = math.MaxInt32; s.Tokens++ }, "tokens", "must be from 1"},
		"negative service":    {func(s *simulate.Stream) { s.ServiceTime = -1 }, "serviceTime", "must be from 0s"},
		"service too long":    {func(s *simulate.Stream) { s.ServiceTime = 2000 * time.Hour }, "serviceTime", "1080h0m0s"},
		"negative share":      {func(s *simulate.Stream) { s.Fails = -0.1 }, "fails", "is -0.1: must be a share from 0 to 1"},
		"share above one":     {func(s *simulate.Stream) { s.Fails = 1.5 }, "fails", "is 1.5"},
		"share not a number":  {func(s *simulate.Stream) { s.Fails = math.NaN() }, "fails", "is NaN"},
		"negative timeout":    {func(s *simulate.Stream) { s.Timeout = -1 }, "timeout", "is -1ns: must be from 0s"},
		"too many retries":    {func(s *simulate.Stream) { s.Retries = 11 }, "retries", "is 11: must be from 0 to 10"},
		"negative delay":      {func(s *simulate.Stream) { s.Retries, s.RetryDelay = 1, -1 }, "retryDelay", "is -1ns: must be from 0s"},
		"delay of no retries": {func(s *simulate.Stream) { s.RetryDelay = 1 }, "retryDelay", "has no effect without retries"},
		"unknown priority":    {func(s *simulate.Stream) { s.Priority = 3 }, "priority", "is 3: must be from rule.PrioritySheddable"},
		"phase without end": {
			func(s *simulate.Stream) { s.Phases = []simulate.Phase{{}, {Until: 1}} },
			"phases[0].until", "is missing: only the last phase",
		},
		"phases out of order": {
			func(s *simulate.Stream) { s.Phases = []simulate.Phase{{Until: 2 * time.Second}, {Until: time.Second}} },
			"phases[1].until", "is 1s: must be later than the phase before it (2s)",
		},
		"phase service": {
			func(s *simulate.Stream) { s.Phases = []simulate.Phase{{ServiceTime: duration(-1)}} },
			"phases[0].serviceTime", "is -1ns",
		},
		"phase share": {
			func(s *simulate.Stream) { s.Phases = []simulate.Phase{{Fails: number(2)}} },
			"phases[0].fails", "is 2: must be a share",
		},
		"attribute without values": {func(s *simulate.Stream) { s.Attrs = attr(simulate.Attr{Name: "a"}) }, "attrs.a.count", "is 0: must be from 1 to 10000000, or give values"},
		"attribute without name":   {func(s *simulate.Stream) { s.Attrs = attr(simulate.Attr{Count: 1}) }, "attrs", `has an attribute called ""`},
		"attribute twice": {
			func(s *simulate.Stream) {
				s.Attrs = attr(simulate.Attr{Name: "a", Count: 1}, simulate.Attr{Name: "a", Count: 1})
			},
			"attrs.a", "is given twice",
		},
		"attribute of another type": {func(s *simulate.Stream) { s.Attrs = attr(simulate.Attr{Name: "a", Values: []any{"x", 2.5}}) }, "attrs.a", "has float64 in place 2: must be text, a whole number or a boolean"},
		"attribute not UTF-8":       {func(s *simulate.Stream) { s.Attrs = attr(simulate.Attr{Name: "a", Values: []any{"\xff"}}) }, "attrs.a", "bytes of UTF-8"},
		"attribute shape":           {func(s *simulate.Stream) { s.Attrs = attr(simulate.Attr{Name: "a", Count: 1, Shape: "x"}) }, "attrs.a.shape", `must be "cycle", "uniform" or "zipf"`},
		"values and count": {
			func(s *simulate.Stream) { s.Attrs = attr(simulate.Attr{Name: "a", Values: []any{1}, Count: 1}) },
			"attrs.a", "has a count or a shape beside its values",
		},
		"rate and times": {func(s *simulate.Stream) { s.Until = 0; s.Times = at(0) }, "rate", "cannot go with times"},
		"from and times": {
			func(s *simulate.Stream) { *s = simulate.Stream{Resource: "r", Times: at(0), From: 1} },
			"from", "has no effect with times",
		},
		"until and times": {
			func(s *simulate.Stream) { *s = simulate.Stream{Resource: "r", Times: at(0), Until: 1} },
			"until", "has no effect with times",
		},
		"shape and times": {
			func(s *simulate.Stream) { *s = simulate.Stream{Resource: "r", Times: at(0), Shape: simulate.Even} },
			"shape", "has no effect with times",
		},
		"negative time": {
			func(s *simulate.Stream) { *s = simulate.Stream{Resource: "r", Times: at(0, -1)} },
			"times", "has -1ms in place 2",
		},
		"time beyond the end": {
			func(s *simulate.Stream) {
				*s = simulate.Stream{Resource: "r", Times: []time.Duration{2000 * time.Hour}}
			},
			"times", "has 2000h0m0s in place 1: must be from 0s to 1080h0m0s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			load := simulate.Load{Streams: []simulate.Stream{valid(func(*simulate.Stream) {}), valid(test.change)}}
			faults := load.Validate()
			require.Len(t, faults, 1)
			assert.Equal(t, 1, faults[0].Stream)
			assert.Equal(t, test.field, faults[0].Field)
			assert.Contains(t, faults[0].Message, test.message)

			_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: time.Second})
			var reported simulate.Faults
			require.ErrorAs(t, err, &reported)
			assert.Equal(t, faults, []simulate.Fault(reported), "Run reports the same")
		})
	}
}

func attr(list ...simulate.Attr) []simulate.Attr { return list }

func TestMistakesInServersAndSignals(t *testing.T) {
	t.Parallel()
	mean := simulate.Service{Mean: time.Second}
	valid := func(change func(s *simulate.Server)) []simulate.Server {
		s := simulate.Server{Name: "db", Resources: []string{"r"}, Workers: 1, Service: mean}
		change(&s)
		return []simulate.Server{s}
	}
	service := func(service simulate.Service) []simulate.Server {
		return valid(func(s *simulate.Server) { s.Service = service })
	}
	changes := func(list ...simulate.ServiceChange) []simulate.Server {
		return valid(func(s *simulate.Server) { s.Changes = list })
	}
	services := func(list ...simulate.ResourceService) []simulate.Server {
		return valid(func(s *simulate.Server) { s.Services = list })
	}
	quota := func(q simulate.Quota) []simulate.Server {
		return valid(func(s *simulate.Server) { s.TimeSlice, s.Quota = 10*ms, q })
	}
	negative := -time.Second
	tests := map[string]struct {
		servers []simulate.Server
		signals []simulate.Signal
		want    string
	}{
		"no workers":       {servers: valid(func(s *simulate.Server) { s.Workers = 0 }), want: "servers[0].workers is 0: must be from 1 to 1000000"},
		"too many workers": {servers: valid(func(s *simulate.Server) { s.Workers = 1e6 + 1 }), want: "servers[0].workers is 1000001"},
		"no resources":     {servers: valid(func(s *simulate.Server) { s.Resources = nil }), want: "servers[0].resources is missing"},
		"unused": {
			servers: valid(func(s *simulate.Server) { s.Resources = []string{"x", "y*"} }),
			want:    "servers[0].resources match no resource of the load: name one that a stream calls",
		},
		"pattern": {
			servers: valid(func(s *simulate.Server) { s.Resources = []string{"r", "[x"} }),
			want:    `servers[0].resources has "[x", character 1: `,
		},
		"name twice": {
			servers: append(valid(func(*simulate.Server) {}), simulate.Server{Name: "db", Resources: []string{"s"}, Workers: 1, Service: mean}),
			want:    `servers[1].name is "db", as that of a server before it`,
		},
		"guard":              {servers: valid(func(s *simulate.Server) { s.Guard = "\xff" }), want: `servers[0].guard is "\xff": must be at most 1024 bytes of UTF-8`},
		"share":              {servers: valid(func(s *simulate.Server) { s.Share = 1.1 }), want: "servers[0].share is 1.1: must be more than 0 and at most 1"},
		"unlimited workers":  {servers: valid(func(s *simulate.Server) { s.Unlimited = true }), want: "servers[0].workers has no effect: calls of an unlimited server"},
		"unlimited slowdown": {servers: valid(func(s *simulate.Server) { s.Workers, s.Unlimited, s.Slowdown = 0, true, 1 }), want: "servers[0].slowdown has no effect"},
		"unlimited slices":   {servers: valid(func(s *simulate.Server) { s.Workers, s.Unlimited, s.TimeSlice = 0, true, time.Second }), want: "servers[0].timeSlice has no effect"},
		"services without resources": {
			servers: services(simulate.ResourceService{Service: mean}), want: "servers[0].services[0].resources is missing",
		},
		"services that are not used": {
			servers: services(simulate.ResourceService{Resources: []string{"*"}, Service: mean}, simulate.ResourceService{Resources: []string{"r"}, Service: mean}),
			want:    "servers[0].services[1].resources match no resource that the server serves and that no services before them match",
		},
		"services without a mean": {servers: services(simulate.ResourceService{Resources: []string{"r"}}), want: "servers[0].services[0].mean is missing"},
		"services of a bad shape": {servers: services(simulate.ResourceService{Resources: []string{"r"}, Service: simulate.Service{Mean: 1, P99: 3}}), want: "servers[0].services[0].p99 has no effect"},
		"share of services":       {servers: services(simulate.ResourceService{Resources: []string{"r"}, Service: mean, Share: -1}), want: "servers[0].services[0].share is -1"},
		"pattern of services":     {servers: services(simulate.ResourceService{Resources: []string{"[r"}, Service: mean}), want: `servers[0].services[0].resources has "[r", character 1: `},
		"changes of services":     {servers: services(simulate.ResourceService{Resources: []string{"r"}, Service: mean, Changes: []simulate.ServiceChange{{}}}), want: "servers[0].services[0].changes[0].service is missing"},
		"changes without a service": {
			servers: valid(func(s *simulate.Server) {
				s.Service, s.Changes = simulate.Service{}, []simulate.ServiceChange{{Service: mean}}
				s.Services = []simulate.ResourceService{{Resources: []string{"r"}, Service: mean}}
			}),
			want: "servers[0].changes has no effect: there is no service that it changes",
		},
		"no service for a resource": {
			servers: valid(func(s *simulate.Server) {
				s.Resources, s.Service = []string{"r", "s"}, simulate.Service{}
				s.Services = []simulate.ResourceService{{Resources: []string{"r"}, Service: mean}}
			}),
			want: `servers[0].service is missing: none of the services is for calls of "s"`,
		},
		"slowdown":       {servers: valid(func(s *simulate.Server) { s.Slowdown = math.NaN() }), want: "servers[0].slowdown is NaN: must be from 0 to 1000"},
		"no mean":        {servers: service(simulate.Service{}), want: "servers[0].service.mean is missing"},
		"negative mean":  {servers: service(simulate.Service{Mean: -1}), want: "servers[0].service.mean is -1ns"},
		"shape":          {servers: service(simulate.Service{Mean: 1, Shape: "normal"}), want: `servers[0].service.shape is "normal": must be "constant", "exponential", "lognormal" or "bimodal"`},
		"no p99":         {servers: service(simulate.Service{Mean: 1, Shape: simulate.Lognormal}), want: "servers[0].service.p99 is missing"},
		"low p99":        {servers: service(simulate.Service{Mean: 2, Shape: simulate.Lognormal, P99: 2}), want: "servers[0].service.p99 is 2ns: must be more than the mean (2ns)"},
		"high p99":       {servers: service(simulate.Service{Mean: 2, Shape: simulate.Lognormal, P99: 29}), want: "servers[0].service.p99 is 29ns"},
		"p99 of another": {servers: service(simulate.Service{Mean: 2, P99: 3}), want: "servers[0].service.p99 has no effect"},
		"no slow share":  {servers: service(simulate.Service{Mean: 1, Shape: simulate.Bimodal, SlowFactor: 2}), want: "servers[0].service.slowShare is 0: a bimodal service time needs"},
		"slow share":     {servers: service(simulate.Service{Mean: 1, Shape: simulate.Bimodal, SlowShare: 1, SlowFactor: 2}), want: "servers[0].service.slowShare is 1: a bimodal"},
		"slow factor":    {servers: service(simulate.Service{Mean: 1, Shape: simulate.Bimodal, SlowShare: 0.1, SlowFactor: 1}), want: "servers[0].service.slowFactor is 1: a bimodal"},
		"slow of another": {
			servers: service(simulate.Service{Mean: 1, SlowShare: 0.1}), want: "servers[0].service.slowShare has no effect: only a bimodal service time has one; remove it, or set shape: bimodal",
		},
		"stall without a length": {
			servers: valid(func(s *simulate.Server) { s.Stalls = []simulate.Stall{{At: 1}} }), want: "servers[0].stalls[0].for is 0s: must be longer than 0s",
		},
		"stalls that overlap": {
			servers: valid(func(s *simulate.Server) { s.Stalls = []simulate.Stall{{At: 1, For: 2}, {At: 2, For: 1}} }),
			want:    "servers[0].stalls[1].at is 2ns: must not be before the stall before it is over (3ns)",
		},
		"time slice": {
			servers: valid(func(s *simulate.Server) { s.TimeSlice = time.Microsecond }),
			want:    "servers[0].timeSlice is 1µs: must be from 100µs to 1s, or be left out",
		},
		"quota without time slice": {
			servers: valid(func(s *simulate.Server) { s.Quota = simulate.Quota{Time: ms, Period: 100 * ms} }),
			want:    "servers[0].timeSlice is missing: calls under a quota share it in time slices, in Go of 10ms",
		},
		"quota without period": {
			servers: quota(simulate.Quota{Time: ms}), want: "servers[0].quota.period is 0s: must be from 1ms to 1s",
		},
		"quota without time": {
			servers: quota(simulate.Quota{Period: 100 * ms}), want: "servers[0].quota.time is 0s: must be at least 1ms",
		},
		"quota of all": {
			servers: quota(simulate.Quota{Time: 100 * ms, Period: 100 * ms}),
			want:    "servers[0].quota.time is 100ms, which has no effect: must be less than 100ms, which all workers have in a period",
		},
		"empty change": {servers: changes(simulate.ServiceChange{At: 1}), want: "servers[0].changes[0].service is missing"},
		"late change":  {servers: changes(simulate.ServiceChange{At: -1, Service: mean}), want: "servers[0].changes[0].at is -1ns"},
		"changes out of order": {
			servers: changes(simulate.ServiceChange{At: 2, Service: mean}, simulate.ServiceChange{At: 2, Service: mean}),
			want:    "servers[0].changes[1].at is 2ns: must be later than the change before it",
		},
		"change without p99": {
			servers: changes(simulate.ServiceChange{Service: simulate.Service{Shape: simulate.Lognormal}}),
			want:    "servers[0].changes[0].service.p99 is missing",
		},
		"empty signal":     {signals: []simulate.Signal{{}}, want: "signals[0].cpu is missing: give cpu, load, memory, schedulerDelay, gc or throttled"},
		"negative signal":  {signals: []simulate.Signal{{At: -1, CPU: number(1)}}, want: "signals[0].at is -1ns"},
		"signals in order": {signals: []simulate.Signal{{CPU: number(1)}, {CPU: number(1)}}, want: "signals[1].at is 0s: must be later"},
		"cpu":              {signals: []simulate.Signal{{CPU: number(1.1)}}, want: "signals[0].cpu is 1.1: must be from 0 to 1"},
		"memory":           {signals: []simulate.Signal{{Memory: number(math.NaN())}}, want: "signals[0].memory is NaN"},
		"gc":               {signals: []simulate.Signal{{GC: number(2)}}, want: "signals[0].gc is 2: must be from 0 to 1"},
		"throttled":        {signals: []simulate.Signal{{Throttled: number(-1)}}, want: "signals[0].throttled is -1: must be from 0 to 1"},
		"scheduler delay":  {signals: []simulate.Signal{{SchedulerDelay: &negative}}, want: "signals[0].schedulerDelay is -1s: must be from 0s"},
		"load":             {signals: []simulate.Signal{{Load: number(-1)}}, want: "signals[0].load is -1: must be from 0 to 1e+06"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			load := streams(simulate.Stream{Times: at(0)}, simulate.Stream{Resource: "s", Times: at(0)})
			load.Servers, load.Signals = test.servers, test.signals
			var lines []string
			for _, fault := range load.Validate() {
				lines = append(lines, simulate.Faults{fault}.Error())
			}
			require.NotEmpty(t, lines)
			assert.Contains(t, lines[0], "simulate: "+test.want)
		})
	}
}

func TestServedStreamsHaveNoServiceTime(t *testing.T) {
	t.Parallel()
	load := streams(simulate.Stream{
		Times: at(0), ServiceTime: time.Second,
		Phases: []simulate.Phase{{Until: time.Second, Fails: number(1)}, {ServiceTime: duration(0)}},
	})
	load.Servers = []simulate.Server{{Name: "db", Resources: []string{"r"}, Workers: 1, Service: simulate.Service{Mean: 1}}}
	_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{})
	const why = "has no effect: the calls are served by servers[0] (db): remove it, or take the resource from the server"
	require.EqualError(t, err, "simulate: streams[0] serviceTime "+why+"\nsimulate: streams[0] phases[1].serviceTime "+why)
}

func TestValidLoadsHaveNoFaults(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "r", Rate: 0.001},
		{Resource: strings.Repeat("x", rule.MaxNameLength), Rate: simulate.MaxRate, Shape: simulate.Poisson},
		{Resource: "é", Times: at(0), Tokens: math.MaxInt32, Origin: "other", ServiceTime: time.Hour},
		{Resource: "r", Times: []time.Duration{simulate.MaxDuration}},
		{
			Resource: "r", Rate: 1, Fails: 1, Timeout: time.Second, Priority: rule.PriorityHigh,
			Phases: []simulate.Phase{{Until: 1}, {Until: 2, Fails: number(0)}, {ServiceTime: duration(0)}},
		},
		{Resource: "r", Rate: 1, Attrs: []simulate.Attr{{Name: "user", Values: []any{"a", 1, int64(1)}}}},
	}}
	assert.Empty(t, load.Validate())
}

func TestEveryMistakeIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{{Rate: -1, Tokens: -2}, {Resource: "r", Rate: 1, From: -1}}}
	_, err := simulate.Run(t.Context(), rules.Set{}, load, simulate.Options{Duration: -time.Second})
	require.EqualError(t, err, strings.Join([]string{
		"simulate: streams[0] resource is missing: name the resource that is called",
		"simulate: streams[0] rate is -1: must be more than 0 and at most 1000000000 calls per second",
		"simulate: streams[0] tokens is -2: must be from 1 to 2147483647",
		"simulate: streams[1] from is -1ns: must be from 0s to 1080h0m0s",
		"simulate: duration is -1s: must be longer than 0s and at most 1080h0m0s",
	}, "\n"))
}

func TestALoadThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	endless := streams(simulate.Stream{Rate: 1}, simulate.Stream{Times: at(1)}, simulate.Stream{Rate: 1, Shape: simulate.Poisson})
	manyResources := simulate.Load{}
	for range 7 {
		manyResources.Streams = append(manyResources.Streams,
			simulate.Stream{Resource: strings.Repeat("r", len(manyResources.Streams)+1), Times: at(0)})
	}
	tests := map[string]struct {
		load    simulate.Load
		options simulate.Options
		faults  []string
	}{
		"no streams": {
			simulate.Load{},
			simulate.Options{Duration: time.Second},
			[]string{"streams is missing"},
		},
		"no end": {
			endless,
			simulate.Options{},
			[]string{"streams[0] until is missing", "streams[2] until is missing"},
		},
		"too long": {
			endless,
			simulate.Options{Duration: 2000 * time.Hour},
			[]string{"duration is 2000h0m0s: must be longer than 0s and at most 1080h0m0s"},
		},
		"too many calls": {
			streams(simulate.Stream{Rate: simulate.MaxRate}),
			simulate.Options{Duration: simulate.MaxDuration},
			[]string{"streams make more than 10000000 calls: that is the most; lower the rates or shorten the time"},
		},
		"too many calls of streams that end": {
			streams(simulate.Stream{Rate: 6e6, Until: time.Second}, simulate.Stream{Rate: 6e6, Until: time.Second}),
			simulate.Options{},
			[]string{"streams make more than 10000000 calls"},
		},
		"too many random calls": {
			streams(simulate.Stream{Rate: 1e9, Shape: simulate.Poisson}),
			simulate.Options{Duration: time.Second},
			[]string{"streams make more than 10000000 calls"},
		},
		"too many events": {
			streams(simulate.Stream{Rate: 3e6}),
			simulate.Options{Duration: time.Second, Events: true},
			[]string{"streams make more than 2000000 calls: that is the most when each is reported"},
		},
		"too many rows": {
			manyResources,
			simulate.Options{Duration: 160 * time.Hour},
			[]string{"duration is 160h0m0s: for 7 resources that makes more than 4000000 rows"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := simulate.Run(t.Context(), rules.Set{}, test.load, test.options)
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(test.faults))
			for i, line := range lines {
				assert.Contains(t, line, "simulate: "+test.faults[i])
			}
		})
	}
}
