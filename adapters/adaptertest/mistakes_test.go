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
	"github.com/penstock-go/penstock/core"
)

func prefixes(list ...string) (prefixes []netip.Prefix) {
	for _, text := range list {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}

func everyone() []priority.Callers {
	return []priority.Callers{{From: prefixes("0.0.0.0/0"), Max: core.PriorityCritical}}
}

func TestAdapterWithoutAMistakePasses(t *testing.T) {
	t.Run("http", func(t *testing.T) { adaptertest.HTTP(t, toyHTTP{}.harness()) })
}

// mistakeVariable names the mistake of the adapter, in the process that makes it.
const mistakeVariable = "ADAPTERTEST_MISTAKE"

// TestMistake fails if it is run with a mistake.
func TestMistake(t *testing.T) {
	mistake := os.Getenv(mistakeVariable)
	if mistake == "" {
		t.Skip("for the processes of the other tests only")
	}
	const timeout = 2 * time.Second // of events that do not come
	t.Run("http", func(t *testing.T) {
		h := toyHTTP{mistake}.harness()
		h.Timeout = timeout
		adaptertest.HTTP(t, h)
	})
}

// Every test of the suite fails for an adapter that makes the mistake it is for, and only
// few fail for the others.
func TestEveryTestFailsForSomeMistake(t *testing.T) {
	for _, suite := range []struct {
		name     string
		tests    []string
		mistakes map[string][]string
	}{
		{"http", adaptertest.HTTPTests(), httpMistakes()},
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
				requireFailures(t, suite.name, mistake, tests)
			})
		}
	}
}

// requireFailures runs tests of a suite with a mistake, in a process of its own, and checks
// that all fail.
func requireFailures(t *testing.T, suite, mistake string, tests []string) {
	t.Helper()
	var names []string
	for _, test := range tests {
		names = append(names, regexp.QuoteMeta(strings.ReplaceAll(test, " ", "_")))
	}
	pattern := "^TestMistake$/^" + suite + "$/^(" + strings.Join(names, "|") + ")$"
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern, "-test.v", "-test.timeout=2m") //nolint:gosec // this program
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
		"names by path":                         {"names come from routes", "no path or method becomes a name"},
		"answers OPTIONS":                       {"unserved requests are answered as without a guard"},
		"does not guard what no route matches":  {"unmatched requests share a limit"},
		"counts HEAD on its own":                {"HEAD shares the limit of its route"},
		"ignores Resource":                      {"Resource names requests", "requests without a resource are not guarded"},
		"guards what has no resource":           {"requests without a resource are not guarded"},
		"answers all refusals with 429":         {"refusals are answered by their reason"},
		"sets no fields on refusals":            {"refusals are answered by their reason", "refusals describe the quota"},
		"serves what is refused":                {"refused requests do not reach the handler", "exactly the limit passes under concurrency"},
		"ignores answers of rules":              {"injected faults are answered as their rules say"},
		"names rules that are hidden":           {"FieldsNever names no rule"},
		"sets no fields on what passes":         {"FieldsAlways describes the quota of requests that pass"},
		"ignores Blocked":                       {"Blocked answers refusals"},
		"ignores EntryError":                    {"EntryError answers requests that do not pass otherwise"},
		"serves when closed":                    {"a closed engine is answered with 503"},
		"answers ErrClosed with 500":            {"a closed engine is answered with 503", "requests that wait when the engine is closed are answered with 503"},
		"is not inbound":                        {"rules get what the options say"},
		"ignores Origin":                        {"rules of an origin see its calls only", "rules get what the options say"},
		"ignores Tokens":                        {"Tokens are what a call takes", "rules get what the options say"},
		"raises tokens":                         {"fewer tokens than one are answered with 500"},
		"offers no attributes":                  {"rules look at attributes of requests", "clients of proxies have addresses of their own"},
		"ignores Attributes":                    {"attributes of the service go first", "rules get what the options say"},
		"believes proxies it does not know":     {"clients of proxies have addresses of their own", "rules look at attributes of requests"},
		"does not bound attributes":             {"long attributes are shortened"},
		"reads attributes at once":              {"attributes are read only if a rule asks"},
		"makes an engine of its own":            {"no engine is the default engine"},
		"believes all priorities":               {"callers choose the priority that they may"},
		"does not pass priorities on":           {"callers choose the priority that they may"},
		"ignores PriorityTrust":                 {"trust by a function goes first and is asked only when needed"},
		"asks PriorityTrust always":             {"trust by a function goes first and is asked only when needed"},
		"never reports failures":                {"statuses from 500 up are failures", "errors of handlers are failures", "a breaker is opened by failures only"},
		"ignores errors of handlers":            {"errors of handlers are failures", "refusals as errors of handlers are ignored"},
		"takes every error for a failure":       {"errors with a status count by the status"},
		"swallows panics":                       {"a panic is a failure and is passed on"},
		"forgets Exit after a panic":            {"the server goes on after panics", "a panic of Failure ends the call"},
		"forgets Exit":                          {"statuses from 500 up are failures", "waiting requests pass on time"},
		"leaks goroutines":                      {"statuses from 500 up are failures", "names come from routes"},
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
