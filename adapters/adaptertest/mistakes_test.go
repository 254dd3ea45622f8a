package adaptertest_test

import (
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/rule"
)

func prefixes(list ...string) (prefixes []netip.Prefix) {
	for _, text := range list {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}

func everyone() []priority.Callers {
	return []priority.Callers{{From: prefixes("0.0.0.0/0"), Max: rule.PriorityCritical}}
}

func TestAdapterWithoutAMistakePasses(t *testing.T) {
	t.Run("http", func(t *testing.T) { adaptertest.HTTP(t, toyHTTP{}.harness()) })
	t.Run("rpc", func(t *testing.T) { adaptertest.RPC(t, toyRPC{}.harness()) })
	t.Run("calls", func(t *testing.T) { adaptertest.Calls(t, toyCalls{}.harness()) })
}

// mistakeVariable names the mistake of the adapter, in the process that makes it.
const mistakeVariable = "ADAPTERTEST_MISTAKE"

// TestMistake fails if it is run with a mistake.
func TestMistake(t *testing.T) {
	mistake := os.Getenv(mistakeVariable)
	if mistake == "" {
		t.Skip("for the processes of the other tests only")
	}
	const timeout = 200 * time.Millisecond // of events that do not come
	t.Run("http", func(t *testing.T) {
		h := toyHTTP{mistake}.harness()
		h.Timeout = timeout
		adaptertest.HTTP(t, h)
	})
	t.Run("rpc", func(t *testing.T) {
		h := toyRPC{mistake}.harness()
		h.Timeout = timeout
		adaptertest.RPC(t, h)
	})
	t.Run("calls", func(t *testing.T) {
		h := toyCalls{mistake}.harness()
		h.Timeout = timeout
		adaptertest.Calls(t, h)
	})
}

// Every test of the suites fails for an adapter that makes a mistake which it looks for.
func TestEveryTestFailsForSomeMistake(t *testing.T) {
	for _, suite := range []struct {
		name     string
		tests    []string
		mistakes map[string][]string
	}{
		{"http", adaptertest.HTTPTests(), httpMistakes()},
		{"rpc", adaptertest.RPCTests(), rpcMistakes()},
		{"calls", adaptertest.CallsTests(), callsMistakes()},
	} {
		var found []string
		for _, tests := range suite.mistakes {
			found = append(found, tests...)
		}
		for _, test := range suite.tests {
			assert.Contains(t, found, test, "no mistake fails this test of %s", suite.name)
		}
		for mistake, tests := range suite.mistakes {
			t.Run(suite.name+", "+mistake, func(t *testing.T) {
				t.Parallel()
				for _, test := range tests {
					require.Contains(t, suite.tests, test)
				}
				if adaptertest.RaceEnabled && slices.Contains(foundByAllocations(), mistake) {
					t.Skip("the race detector makes allocations of its own, which are not counted")
				}
				requireFailures(t, suite.name, mistake, tests)
			})
		}
	}
}

// foundByAllocations are the mistakes that only allocations show.
func foundByAllocations() []string { return []string{"allocates", "reads attributes at once"} }

// requireFailures runs tests of a suite with a mistake, in a process of its own, and checks
// that all fail.
func requireFailures(t *testing.T, suite, mistake string, tests []string) {
	t.Helper()
	var names []string
	for _, test := range tests {
		names = append(names, regexp.QuoteMeta(strings.ReplaceAll(test, " ", "_")))
	}
	pattern := "^TestMistake$/^" + suite + "$/^(" + strings.Join(names, "|") + ")$"
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern, "-test.v", "-test.timeout=2m")
	command.Env = append(os.Environ(), mistakeVariable+"="+mistake)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the tests pass")
	failures := regexp.MustCompile(`--- FAIL: TestMistake/`+suite+`/([^/\s]+) `).FindAllStringSubmatch(string(output), -1)
	for _, test := range tests {
		assert.True(t, slices.ContainsFunc(failures, func(f []string) bool {
			return f[1] == strings.ReplaceAll(test, " ", "_")
		}), "%q passes with the mistake:\n%s", test, output)
	}
}

// httpMistakes are mistakes of adapters, with tests that each fails.
func httpMistakes() map[string][]string {
	return map[string][]string{
		"keeps the guard for itself": {
			"handlers reach the guard of their request", "what a handler ignores is ignored whatever it answers",
		},
		"hands the context of the caller on":   {"requests whose handlers wait are not under way for an adaptive rule"},
		"names by path":                        {"names come from routes", "no path or method becomes a name"},
		"answers OPTIONS":                      {"unserved requests are answered as without a guard"},
		"does not guard what no route matches": {"unmatched requests share a limit"},
		"counts HEAD on its own":               {"HEAD shares the limit of its route"},
		"ignores Resource":                     {"Resource names requests", "requests without a resource are not guarded"},
		"guards what has no resource":          {"requests without a resource are not guarded"},
		"answers all refusals with 429":        {"refusals are answered by their reason"},
		"sets no fields on refusals":           {"refusals are answered by their reason", "refusals describe the quota"},
		"serves what is refused":               {"refused requests do not reach the handler", "exactly the limit passes under concurrency"},
		"ignores answers of rules":             {"injected faults are answered as their rules say"},
		"names rules that are hidden":          {"FieldsNever names no rule"},
		"ignores Spread":                       {"Spread has clients come back one after the other"},
		"sets no fields on what passes":        {"FieldsAlways describes the quota of requests that pass"},
		"ignores Blocked":                      {"Blocked answers refusals"},
		"ignores EntryError":                   {"EntryError answers requests that do not pass otherwise"},
		"serves when closed":                   {"a closed engine is answered with 503"},
		"answers ErrClosed with 500":           {"a closed engine is answered with 503", "requests that wait when the engine is closed are answered with 503"},
		"is not inbound":                       {"rules get what the options say"},
		"ignores Origin":                       {"rules of an origin see its calls only", "rules get what the options say"},
		"ignores Tokens":                       {"Tokens are what a call takes", "rules get what the options say"},
		"raises tokens":                        {"fewer tokens than one are answered with 500"},
		"offers no attributes":                 {"rules look at attributes of requests", "clients of proxies have addresses of their own"},
		"ignores Attributes":                   {"attributes of the service go first", "rules get what the options say"},
		"believes proxies it does not know":    {"clients of proxies have addresses of their own", "rules look at attributes of requests"},
		"does not bound attributes":            {"long attributes are shortened"},
		"reads attributes at once":             {"attributes are read only if a rule asks"},
		"makes an engine of its own":           {"no engine is the default engine"},
		"believes all priorities":              {"callers choose the priority that they may"},
		"does not pass priorities on":          {"callers choose the priority that they may"},
		"ignores PriorityTrust":                {"trust by a function goes first and is asked only when needed"},
		"asks PriorityTrust always":            {"trust by a function goes first and is asked only when needed"},
		"never reports failures": {
			"statuses from 500 up are failures", "errors of handlers are failures", "a breaker is opened by failures only",
			"rules count calls by their end",
		},
		"ignores errors of handlers":            {"errors of handlers are failures", "refusals as errors of handlers are ignored"},
		"takes every error for a failure":       {"errors with a status count by the status"},
		"swallows panics":                       {"a panic is a failure and is passed on"},
		"forgets Exit after a panic":            {"the server goes on after panics", "options that panic hold nothing"},
		"forgets Exit":                          {"waiting requests pass on time", "Blocked answers refusals"},
		"leaks goroutines":                      {"large bodies arrive whole"},
		"fails what is refused further down":    {"refusals further down are ignored", "refusals as errors of handlers are ignored", "refusals of an inner guard are ignored"},
		"ignores all refusals further down":     {"faults injected further down are failures"},
		"fails what clients leave":              {"requests that clients leave are ignored", "streams that clients leave end without a failure", "a breaker is opened by failures only"},
		"ignores failures before clients leave": {"failures before clients leave count"},
		"ignores Failure":                       {"Failure decides what is a failure"},
		"buffers responses":                     {"flushes arrive, and the call lasts to the end of the stream"},
		"exits before the handler":              {"flushes arrive, and the call lasts to the end of the stream", "never more than the limit are under way"},
		"hides the connection":                  {"a connection can be taken over"},
		"cuts bodies":                           {"large bodies arrive whole"},
		"does not wait":                         {"waiting requests pass on time"},
		"waits without a context":               {"clients that leave while they wait free their places"},
		"ignores BufferBody":                    {"clients with a body that leave while they wait free their places"},
		"counts twice":                          {"exactly the limit passes under concurrency"},
		"counts nested guards":                  {"two guards of an engine are one call"},
		"does not yield":                        {"requests come to their rules before others compute"},
		"allocates":                             {"passing and refusing allocate no more than they may"},
	}
}

// rpcMistakes are mistakes of adapters for remote calls, with tests that each fails.
func rpcMistakes() map[string][]string {
	return map[string][]string{
		"keeps the guard for itself": {
			"handlers reach the guard of their call", "what a handler ignores is ignored whatever it replies",
		},
		"hands the context of the caller on": {"calls whose handlers wait are not under way for an adaptive rule"},
		"ignores methods":                    {"names are those of methods"},
		"ignores Resource":                   {"Resource names calls", "calls without a resource are not guarded"},
		"guards what has no resource":        {"calls without a resource are not guarded"},
		"makes an engine of its own":         {"no engine is the default engine"},
		"answers all refusals alike":         {"refusals are answered by their reason"},
		"says no delay":                      {"refusals name the rule and say when to retry"},
		"names rules that are hidden":        {"refusals name no rule without ShowRules"},
		"hides the cause":                    {"refusals of a client can be told from those of its server"},
		"ignores answers of rules":           {"injected faults are answered as their rules say"},
		"ignores Blocked":                    {"Blocked replaces the error"},
		"ignores EntryError":                 {"EntryError replaces the error"},
		"serves when closed":                 {"a closed engine is answered with Unavailable"},
		"answers ErrClosed with Unknown":     {"calls that wait when the engine is closed are answered with Unavailable"},
		"lets clients retry":                 {"refused calls are not retried"},
		"confuses the sides":                 {"rules get what the options say"},
		"ignores Origin":                     {"rules get what the options say"},
		"ignores Tokens":                     {"Tokens are what a call takes"},
		"offers no attributes":               {"rules look at metadata and method"},
		"ignores Attributes":                 {"attributes of the service go first"},
		"ignores TrustedProxies":             {"servers know the addresses of clients"},
		"does not bound attributes":          {"long metadata is shortened"},
		"believes all priorities":            {"callers choose the priority that they may"},
		"ignores PriorityTrust":              {"trust by a function goes first and is asked only when needed"},
		"passes no priority on":              {"clients pass the priority of the context on"},
		"never reports failures":             {"codes that blame the server are failures", "rules count calls by their end"},
		"fails no plain error":               {"errors without a code are failures"},
		"swallows panics":                    {"a panic is a failure and is passed on"},
		"forgets Exit after a panic":         {"options that panic hold nothing"},
		"fails what is refused further down": {"refusals further down are ignored", "refusals of an inner guard are ignored"},
		"ignores all refusals further down":  {"faults injected further down are failures"},
		"fails what callers cancel":          {"calls that their callers cancel are ignored", "a breaker is opened by failures only"},
		"ignores deadlines":                  {"calls that meet their deadline have failed"},
		"ignores Failure":                    {"Failure decides what is a failure"},
		"exits early":                        {"calls last until their handlers return", "never more than the limit are under way"},
		"does not wait":                      {"waiting calls pass on time"},
		"waits without a context":            {"callers that cancel while they wait free their places", "calls whose context has ended take nothing"},
		"counts twice":                       {"exactly the limit passes under concurrency"},
		"ignores delays":                     {"a throttle obeys the delay that a server asks for"},
		"ignores throttles":                  {"retries beyond the budget are not sent"},
		"does not yield":                     {"calls come to their rules before others compute"},
		"allocates":                          {"passing and refusing allocate no more than they may"},
	}
}

// callsMistakes are mistakes of guards of clients, with tests that each fails.
func callsMistakes() map[string][]string {
	return map[string][]string{
		"names calls otherwise":              {"calls have the name of their resource"},
		"ignores Resource":                   {"Resource names calls", "calls without a resource are not guarded"},
		"makes an engine of its own":         {"no engine is the default engine"},
		"sends what is refused":              {"refused calls are not sent", "exactly the limit passes under concurrency"},
		"hides the cause":                    {"refused calls are not sent", "fewer tokens than one are an error"},
		"serves when closed":                 {"a closed engine refuses with its error"},
		"ignores Tokens":                     {"rules get what the options say", "fewer tokens than one are an error"},
		"ignores Attributes":                 {"rules get what the options say"},
		"is inbound":                         {"rules get what the options say"},
		"ignores priorities":                 {"rules get the priority of the context"},
		"ignores delays":                     {"a throttle obeys the delay that the other end asks for"},
		"ignores rejections":                 {"a throttle refuses most calls of what rejects them"},
		"ignores throttles":                  {"retries beyond the budget are not sent"},
		"never reports failures":             {"failures are those of what is called", "a breaker stops calls of what fails", "rules count calls by their end"},
		"takes every error for a failure":    {"errors of the client are no failures"},
		"fails what callers cancel":          {"calls that their callers cancel are ignored"},
		"ignores deadlines":                  {"calls that meet their deadline have failed"},
		"fails what is refused further down": {"refusals of an inner guard are ignored"},
		"forgets Exit after a panic":         {"options that panic hold nothing"},
		"ignores Failure":                    {"Failure decides what is a failure"},
		"does not wait":                      {"waiting calls pass on time"},
		"waits without a context":            {"callers that cancel while they wait free their places", "calls whose context has ended take nothing"},
		"counts twice":                       {"exactly the limit passes under concurrency"},
		"exits early":                        {"never more than the limit are under way"},
	}
}
