package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestEveryFieldOfALoadIsRead(t *testing.T) {
	t.Parallel()
	load, err := scenario.ParseLoad("load.yaml", []byte(`
streams:
  - {resource: orders, rate: 2000, until: 20s}
  - resource: "GET /carts"
    rate: 0.5
    shape: poisson
    from: 1.5
    until: 1m
    tokens: 3
    origin: mobile
    inbound: true
    priority: low
    attrs: {user: [a, 7, "7"], tenant: t1, size: 2.5, page: {count: 100, shape: zipf}}
    serviceTime: 250ms
    fails: 0.3
    timeout: 500ms
    retries: 2
    retryDelay: 50ms
    phases: [{until: 10s, serviceTime: 20ms}, {until: 20, fails: 1}, {serviceTime: 0, fails: 0}]
  - {resource: orders, times: [0, 0.1, 0.1, 1500ms], serviceTime: 1}
  - {resource: orders, rate: 90/m, until: 10, inbound: false}
  - {resource: pay, times: [1], attrs: {user: u1}}
  - {resource: s1, times: [1]}
servers:
  - name: bank
    resources: pay
    workers: 8
    service: {mean: 10ms, shape: lognormal, p99: 60ms}
    slowdown: 0.02
    changes: [{at: 20s, service: {mean: 40ms}}, {at: 30, service: {mean: 10ms, shape: exponential}}]
  - {resources: ["s?", "stock:*"], workers: 1, service: {mean: 1, shape: bimodal, slowShare: 0.1, slowFactor: 20}, stalls: [{at: 1, for: 500ms}],
     timeSlice: 10ms, quota: {time: 50ms, period: 0.1}}
  - name: remote
    resources: [pay, s1]
    share: 0.3
    guard: "bank:client"
    unlimited: true
    service: {mean: 20ms}
    services: [{resources: pay, share: 0.5, mean: 1, shape: exponential, changes: [{at: 5, service: {mean: 2}}]}]
signals: [{at: 0s, cpu: 0.3, memory: 0.5, load: 1.0}, {at: 5, cpu: 1, schedulerDelay: 20ms, gc: 0.1, throttled: 0.2}]
fleet:
  latency: {mean: 2ms, shape: exponential}
  loss: 0.01
  outages: [{from: 5s, until: 7, empty: true}, {from: 8, until: 8.5}]
  skew: 0
seed: 7
`))
	require.NoError(t, err)
	assert.Equal(t, simulate.Load{
		Seed: 7,
		Streams: []simulate.Stream{
			{Resource: "orders", Rate: 2000, Until: 20 * time.Second},
			{
				Resource: "GET /carts", Rate: 0.5, Shape: simulate.Poisson, From: 1500 * time.Millisecond, Until: time.Minute,
				Tokens: 3, Origin: "mobile", Inbound: true, Priority: rule.PriorityLow,
				Attrs: []simulate.Attr{
					{Name: "user", Values: []any{"a", int64(7), "7"}},
					{Name: "tenant", Values: []any{"t1"}},
					{Name: "size", Values: []any{"2.5"}},
					{Name: "page", Count: 100, Shape: simulate.Zipf},
				},
				ServiceTime: 250 * time.Millisecond, Fails: 0.3, Timeout: 500 * time.Millisecond,
				Retries: 2, RetryDelay: 50 * time.Millisecond,
				Phases: []simulate.Phase{
					{Until: 10 * time.Second, ServiceTime: new(20 * time.Millisecond)},
					{Until: 20 * time.Second, Fails: new(1.0)},
					{ServiceTime: new(time.Duration(0)), Fails: new(0.0)},
				},
			},
			{
				Resource: "orders", ServiceTime: time.Second,
				Times: []time.Duration{0, 100 * time.Millisecond, 100 * time.Millisecond, 1500 * time.Millisecond},
			},
			{Resource: "orders", Rate: 1.5, Until: 10 * time.Second},
			{Resource: "pay", Times: []time.Duration{time.Second}, Attrs: []simulate.Attr{{Name: "user", Values: []any{"u1"}}}},
			{Resource: "s1", Times: []time.Duration{time.Second}},
		},
		Servers: []simulate.Server{
			{
				Name: "bank", Resources: []string{"pay"}, Workers: 8, Slowdown: 0.02,
				Service: simulate.Service{Mean: 10 * time.Millisecond, Shape: simulate.Lognormal, P99: 60 * time.Millisecond},
				Changes: []simulate.ServiceChange{
					{At: 20 * time.Second, Service: simulate.Service{Mean: 40 * time.Millisecond}},
					{At: 30 * time.Second, Service: simulate.Service{Mean: 10 * time.Millisecond, Shape: simulate.Exponential}},
				},
			},
			{
				Resources: []string{"s?", "stock:*"}, Workers: 1,
				Service: simulate.Service{Mean: time.Second, Shape: simulate.Bimodal, SlowShare: 0.1, SlowFactor: 20},
				Stalls:  []simulate.Stall{{At: time.Second, For: 500 * time.Millisecond}},

				TimeSlice: 10 * time.Millisecond, Quota: simulate.Quota{Time: 50 * time.Millisecond, Period: 100 * time.Millisecond},
			},
			{
				Name: "remote", Resources: []string{"pay", "s1"}, Share: 0.3, Guard: "bank:client", Unlimited: true,
				Service: simulate.Service{Mean: 20 * time.Millisecond},
				Services: []simulate.ResourceService{{
					Resources: []string{"pay"}, Share: 0.5,
					Service: simulate.Service{Mean: time.Second, Shape: simulate.Exponential},
					Changes: []simulate.ServiceChange{{At: 5 * time.Second, Service: simulate.Service{Mean: 2 * time.Second}}},
				}},
			},
		},
		Signals: []simulate.Signal{{CPU: new(0.3), Memory: new(0.5), Load: new(1.0)}, {
			At: 5 * time.Second, CPU: new(1.0), SchedulerDelay: new(20 * time.Millisecond), GC: new(0.1), Throttled: new(0.2),
		}},
		Fleet: simulate.Fleet{
			Latency: simulate.Service{Mean: 2 * time.Millisecond, Shape: simulate.Exponential},
			Loss:    0.01,
			Outages: []simulate.Outage{
				{From: 5 * time.Second, Until: 7 * time.Second, Empty: true},
				{From: 8 * time.Second, Until: 8500 * time.Millisecond},
			},
			Skew: new(0.0),
		},
	}, load.Load)
}

func TestALatencyMayBeATime(t *testing.T) {
	t.Parallel()
	load, err := scenario.ParseLoad("l", []byte("streams: [a 1/s for 1s]\nfleet: {latency: 20ms}"))
	require.NoError(t, err)
	assert.Equal(t, simulate.Fleet{Latency: simulate.Service{Mean: 20 * time.Millisecond}}, load.Fleet)
}

func TestALineMeansTheSameAsAMapping(t *testing.T) {
	t.Parallel()
	for line, mapping := range map[string]string{
		"orders 2000/s for 20s":                      "{resource: orders, rate: 2000, until: 20s}",
		"orders 10/s from 5s to 8s origin=mobile":    "{resource: orders, rate: 10, from: 5, until: 8, origin: mobile}",
		"orders 10/s until 8 tokens=2":               "{resource: orders, rate: 10, until: 8, tokens: 2}",
		"orders 10/s for 2.5 from 5s":                "{resource: orders, rate: 10, from: 5, until: 7.5}",
		"GET /s 5/s":                                 "{resource: GET /s, rate: 5}",
		"GET /orders 30/m poisson for 1m":            "{resource: GET /orders, rate: 0.5, shape: poisson, until: 60}",
		"a b 3600/h even":                            "{resource: a b, rate: 1, shape: even}",
		"orders at 0s, 0.1s x3":                      "{resource: orders, times: [0, 0.1, 0.1, 0.1]}",
		"orders at 0,0.1 x2, 1s attrs=user:7,id:a:b": "{resource: orders, times: [0, 0.1, 0.1, 1], attrs: {user: 7, id: 'a:b'}}",
		"orders 1/s fails=0.3 timeout=500ms":         "{resource: orders, rate: 1, fails: 0.3, timeout: 500ms}",
		"orders 1/s inbound priority=low":            "{resource: orders, rate: 1, inbound: true, priority: low}",
		"orders at 1 serviceTime=20ms origin=a":      "{resource: orders, times: [1], serviceTime: 20ms, origin: a}",
		"at 1/s":                                     "{resource: at, rate: 1}",
	} {
		short, err := scenario.ParseLoad("short", []byte("streams:\n- "+line))
		require.NoError(t, err, line)
		long, err := scenario.ParseLoad("long", []byte("streams:\n- "+mapping))
		require.NoError(t, err, mapping)
		assert.Equal(t, long.Load, short.Load, line)
	}
}

func TestEveryMistakeInALoadIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, document, want string }{
		{"empty", "", "l:1:1: the document is empty"},
		{"syntax", "streams: [a\nseed: 1", "l:2:5: the document cannot be read as YAML: did not find expected ',' or ']' (while parsing a flow sequence that begins on line 1)"},
		{"not a mapping", "- a", "l:1:1: the load is a list: must be a mapping of streams, servers, signals, recharges, fleet, start, seed"},
		{"no streams", "seed: 1", "l:1:1: streams is missing: list the calls that come"},
		{"empty list", "streams: []", "l:1:10: streams is missing: a load has at least one stream"},
		{"no resource", "streams: [{rate: 1}]", "l:1:11: resource is missing: name the resource that is called"},
		{"misspelled", "streams:\n- {resuorce: a, resource: a, rate: 1}", `l:2:4: unknown field "resuorce": did you mean "resource"?`},
		{"misspelled and so missing", "streams:\n- {resuorce: a, rat: 1}", `l:2:4: unknown field "resuorce": did you mean "resource"?` + "\n" + `l:2:17: unknown field "rat": did you mean "rate"?`},
		{"unknown", "streams:\n- {resource: a, rate: 1}\nhello: 1", `l:3:1: unknown field "hello": those here are streams, servers, signals, recharges, fleet, start, seed`},
		{"twice", "streams:\n- {resource: a, rate: 1, rate: 2}", "l:2:26: rate is given twice: remove one"},
		{"alias", "streams:\n- {resource: &a a, rate: 1}", "l:2:14: resource has an anchor or is an alias, which is not supported: write the value out"},
		{"seed", "streams: [a 1/s]\nseed: -1", "l:2:7: seed is -1: must be 0 or more"},
		{"fractional seed", "streams: [a 1/s]\nseed: 1.5", "l:2:7: seed is 1.5: must be a whole number"},
		{
			"wrong types", "streams:\n- resource: [a]\n  rate: fast\n  from: soon\n  tokens: 1.5\n  attrs: {a: {b: c}, d: [[x]]}\n  shape:\n  inbound: 1\n  phases: [{fails: many}]\n",
			"l:2:13: resource is a list: must be text\n" +
				`l:3:9: rate is "fast": must be a number, such as 100 or 2.5` + "\n" +
				`l:4:9: from is "soon": must be in seconds, such as 1.5, or have a unit, such as 500ms` + "\n" +
				"l:5:11: tokens is 1.5: must be a whole number\n" +
				`l:6:15: unknown field "b": those here are count, shape` + "\n" +
				"l:6:26: attrs.d is a list: must be text, a number, true or false, a list of them, or {count: 100}\n" +
				"l:7:9: shape is left empty: must be text\n" +
				"l:8:12: inbound is 1: must be true or false\n" +
				`l:9:20: fails is "many": must be a number, such as 100 or 2.5`,
		},
		{"quoted number", `streams: [{resource: a, rate: "1"}]`, `l:1:31: rate is "1": must be a number; remove the quotes`},
		{"rate unit", `streams: [{resource: a, rate: 1/d}]`, `l:1:31: rate is "1/d": must be calls per second, such as 100, 100/s or 6000/m`},
		{
			"ranges", "streams:\n- {resource: a, rate: -1, from: 5, until: 5s, tokens: 0, serviceTime: -1s}",
			"l:2:23: rate is -1: must be more than 0 and at most 1000000000 calls per second\n" +
				"l:2:43: until is 5s: must be later than from (5s) and at most 1080h0m0s\n" +
				"l:2:55: tokens is 0: must be 1 or more\n" +
				"l:2:71: serviceTime is -1s: must be from 0s to 1080h0m0s",
		},
		{
			"rate and times", "streams:\n- {resource: a, rate: 1, times: [1], shape: even}",
			"l:2:23: rate cannot go with times: remove one of the two\nl:2:45: shape has no effect with times: remove it",
		},
		{
			"a field that was replaced", "streams:\n- {resource: a, rate: 1, args: [1]}\n- a 1/s args=1",
			"l:2:32: args was replaced by attrs, which rules name: write attrs: {user: u1}\n" +
				"l:3:9: args was replaced by attrs, which rules name: write attrs: {user: u1}",
		},
		{
			"nested ranges", "streams:\n- resource: a\n  rate: 1\n  fails: 2\n  timeout: 0\n  priority: urgent\n" +
				"  phases: [{until: 2s}, {until: 1s, fails: -1}, {serviceTime: -1s}]\n  attrs: {user: {count: 0}, tenant: {shape: zip}, '': 1}",
			"l:4:10: fails is 2: must be a share from 0 to 1\n" +
				"l:5:12: timeout is 0s: must be longer than 0s\n" +
				`l:6:13: priority is "urgent": must be critical, high, normal, low, sheddable` + "\n" +
				"l:7:33: phases[1].until is 1s: must be later than the phase before it (2s) and at most 1080h0m0s\n" +
				"l:7:44: phases[1].fails is -1: must be a share from 0 to 1\n" +
				"l:7:63: phases[2].serviceTime is -1s: must be from 0s to 1080h0m0s\n" +
				`l:8:10: attrs has an attribute called "": must be a name of at most 1024 bytes in UTF-8` + "\n" +
				"l:8:25: attrs.user.count is 0: must be from 1 to 10000000, or give values\n" +
				"l:8:37: attrs.tenant.count is 0: must be from 1 to 10000000, or give values\n" +
				`l:8:45: attrs.tenant.shape is "zip": must be "cycle", "uniform" or "zipf"`,
		},
		{
			"servers and signals", "streams: [a 1/s]\nservers:\n- {name: db, resource: a, workers: 0, service: {mean: 1s, p99: 2s}}\n" +
				"- {resources: [x], workers: 1, service: {maen: 1}, changes: [{at: 1}]}\n- {resources: a, workers: 1, service: {mean: 1}, quota: {tim: 1ms, period: 0}}\n- 5\nsignals: [{cpu: 2}, {at: 0, memory: much}]",
			`l:3:14: unknown field "resource": did you mean "resources"?` + "\n" +
				"l:3:36: servers[0].workers is 0: must be from 1 to 1000000\n" +
				"l:3:64: servers[0].service.p99 has no effect: only a lognormal service time has one; remove it, or set shape: lognormal\n" +
				"l:4:15: servers[1].resources match no resource of the load: name one that a stream calls\n" +
				`l:4:42: unknown field "maen": did you mean "mean"?` + "\n" +
				"l:4:62: servers[1].changes[0].service is missing: say what service is like from then on\n" +
				`l:5:58: unknown field "tim": did you mean "time"?` + "\n" +
				"l:5:76: period is 0s: must be longer than 0s\n" +
				"l:6:3: a server is 5: must be a mapping of name, resources, share, guard, workers, unlimited, service, services, timeSlice, quota, slowdown, changes, stalls\n" +
				"l:7:17: signals[0].cpu is 2: must be from 0 to 1\n" +
				"l:7:26: signals[1].at is 0s: must be later than the one before it\n" +
				`l:7:37: memory is "much": must be a number, such as 100 or 2.5`,
		},
		{
			"fleet", "streams: [a 1/s]\nfleet:\n  latency: {mean: 2ms, shape: slow}\n  loss: 2\n" +
				"  outages: [{from: 5, until: 3, emty: true}, {from: 2}, {from: -1, until: x}]\n  skew: -1\n  los: 1\n",
			`l:3:31: fleet.latency.shape is "slow": must be "constant", "exponential", "lognormal" or "bimodal"` + "\n" +
				"l:4:9: fleet.loss is 2: must be a share from 0 to 1\n" +
				"l:5:30: fleet.outages[0].until is 3s: must be later than from (5s) and at most 1080h0m0s\n" +
				`l:5:33: unknown field "emty": did you mean "empty"?` + "\n" +
				"l:5:46: fleet.outages[1].until is missing: say when the backend answers again\n" +
				"l:5:53: fleet.outages[1].from is 2s: must not be before the outage before it is over (3s)\n" +
				"l:5:64: fleet.outages[2].from is -1s: must be from 0s to 1080h0m0s\n" +
				`l:5:75: until is "x": must be in seconds, such as 1.5, or have a unit, such as 500ms` + "\n" +
				"l:6:9: fleet.skew is -1: must be a share from 0 to 1\n" +
				`l:7:3: unknown field "los": did you mean "loss"?`,
		},
		{"no fleet", "streams: [a 1/s]\nfleet: [1ms]", "l:2:8: fleet is a list: must be a mapping of latency, loss, outages, skew"},
		{"no latency", "streams: [a 1/s]\nfleet: {latency: 0s}", "l:2:18: latency is 0s: must be longer than 0s"},
		{"words of a line", "streams: [a 1/s fails=x timeout=0 attrs=u priority=]", `l:1:17: fails is "x": must be a share from 0 to 1` + "\n" +
			`l:1:25: timeout is "0": must be longer than 0s` + "\n" + `l:1:35: attrs has "u": must be name:value, such as user:u1` + "\n" +
			"l:1:43: priority is missing behind the ="},
		{"a line of nothing", "streams: [hello you]", `l:1:11: "hello you" names no rate and no times: write "RESOURCE 100/s for 10s" or "RESOURCE at 0s, 1.5s"`},
		{
			"words", "streams:\n- a 1/s fro 5s for tokens=many origin= orign=x\n",
			`l:2:9: unknown word "fro": did you mean "from"?` + "\n" +
				`l:2:13: unknown word "5s": those here are for, from, to, even, poisson, inbound, tokens=, origin=, priority=, attrs=, serviceTime=, fails=, timeout=` + "\n" +
				`l:2:20: until is "tokens=many": must be in seconds, such as 1.5, or have a unit, such as 500ms` + "\n" +
				"l:2:32: origin is missing behind the =\n" +
				`l:2:40: unknown word "orign=": did you mean "origin="?`,
		},
		{"quoted line", "streams:\n- 'a 1/s for'\n", `l:2:10: until is missing behind "for": write a time, such as 1.5s`},
		{"folded line", "streams:\n- >\n  a 1/s\n  for x\n", `l:2:3: until is "x": must be in seconds, such as 1.5, or have a unit, such as 500ms`},
		{"rate of a line", "streams: [a 1/y]", `l:1:13: rate is "1/y": must be calls per second, minute or hour, such as 100/s or 6000/m`},
		{"no times", "streams: [a at]", "l:1:13: times is missing: write when the calls come, as in at 0s, 1.5s x3"},
		{"times", "streams:\n- a at x2 1 now x9999999", `l:2:8: times has "x2": write it behind a time, with how many calls come then, at most 1000000 in all` + "\n" +
			`l:2:13: times has "now": must be in seconds, such as 1.5, or have a unit, such as 500ms` + "\n" +
			`l:2:17: times has "x9999999": write it behind a time, with how many calls come then, at most 1000000 in all`},
		{"twice in a line", "streams: [a 1/s for 1s to 2s for 0s]", "l:1:27: until is given twice: remove one\n" + `l:1:34: until is "0s": must be longer than 0s`},
		{"too long", "streams: [a at 1e9]", "l:1:13: times has 277777h46m40s in place 1: must be from 0s to 1080h0m0s"},
		{"far too long", "streams: [a at 1e99]", `l:1:16: times has "1e99": must be in seconds, such as 1.5, or have a unit, such as 500ms`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			load, err := scenario.ParseLoad("l", []byte(test.document))
			assert.Equal(t, test.want, lines(t, err))
			assert.Empty(t, load.Streams)
		})
	}
}

func TestFaultsOfARunAreReportedWithTheirPlaces(t *testing.T) {
	t.Parallel()
	load, err := scenario.ParseLoad("l", []byte("streams:\n- a 1/s for 5s\n- b 2/s\n"))
	require.NoError(t, err)
	_, err = simulate.Run(t.Context(), rules.Set{}, load.Load, simulate.Options{})
	assert.Contains(t, lines(t, load.Explain(err)), "l:3:3: until is missing")
	assert.Equal(t, assert.AnError, load.Explain(assert.AnError), "what is not about the load stays as it is")
}

func TestADocumentThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	_, err := scenario.ParseLoad("l", []byte(strings.Repeat(" ", rules.MaxDocumentSize+1)))
	assert.Equal(t, "l:1:1: the document is 1048577 bytes long: the most is 1048576", lines(t, err))
}

// lines returns problems, one a line.
func lines(t *testing.T, err error) string {
	t.Helper()
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)
	list := make([]string, len(problems))
	for i, p := range problems {
		list[i] = p.Error()
	}
	return strings.Join(list, "\n")
}
