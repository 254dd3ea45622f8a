package fault_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fault"
)

func TestMistakesInRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fault.Rule)
		faults map[string]string // fields, and what is wrong with them
	}{
		"nothing":                 {func(*fault.Rule) {}, nil},
		"everything":              {func(r *fault.Rule) { r.Abort = fault.Abort{HTTP: 599, GRPC: "UNAUTHENTICATED"} }, nil},
		"only an abort":           {func(r *fault.Rule) { r.Delay, r.Abort = 0, fault.Abort{HTTP: 400} }, nil},
		"only an abort over gRPC": {func(r *fault.Rule) { r.Delay, r.Abort = 0, fault.Abort{GRPC: "ABORTED"} }, nil},
		"least":                   {func(r *fault.Rule) { r.Percent, r.Delay, r.Until = 0.0001, ms, time.Unix(0, 0) }, nil},
		"most":                    {func(r *fault.Rule) { r.Percent, r.Delay, r.Until = 100, 10*time.Minute, time.Unix(0, math.MaxInt64) }, nil},
		"all missing": {func(r *fault.Rule) { *r = fault.Rule{Resource: "pay"} }, map[string]string{
			"percent": "is 0: must be from 0.0001 to 100, of 100 calls",
			"delay":   "is missing: write how long calls are delayed, or refuse them with abort: {http: 503}",
			"until":   "is missing: write when the rule ends, such as 2030-06-01T00:00:00Z; nothing is injected from then on",
		}},
		"too little": {func(r *fault.Rule) {
			r.Percent, r.Delay, r.Abort.HTTP, r.Until = 0.00001, ms-1, 399, time.Unix(0, -1)
		}, map[string]string{
			"percent":    "is 1e-05: must be from 0.0001 to 100, of 100 calls",
			"delay":      "is 999.999µs: must be from 1ms to 10m0s",
			"abort.http": "is 399: must be the status of an error, from 400 to 599",
			"until":      "is 1969-12-31T23:59:59Z: must be from 1970 to 2262",
		}},
		"too much": {func(r *fault.Rule) {
			r.Percent, r.Delay, r.Abort.HTTP, r.Until = 100.1, 10*time.Minute+1, 600, time.Unix(0, math.MaxInt64).Add(1)
		}, map[string]string{
			"percent":    "is 100.1: must be from 0.0001 to 100, of 100 calls",
			"delay":      "is 10m0.000000001s: must be from 1ms to 10m0s",
			"abort.http": "is 600: must be the status of an error, from 400 to 599",
			"until":      "is 2262-04-11T23:47:16Z: must be from 1970 to 2262",
		}},
		"nonsense": {func(r *fault.Rule) { r.Percent, r.Delay, r.Abort.GRPC = math.NaN(), -second, "UNAVAILABL" }, map[string]string{
			"percent":    "is NaN: must be from 0.0001 to 100, of 100 calls",
			"delay":      "is -1s: must be from 1ms to 10m0s",
			"abort.grpc": `is "UNAVAILABL": did you mean "UNAVAILABLE"?`,
		}},
		"a code that is no error": {func(r *fault.Rule) { r.Abort.GRPC = "OK" }, map[string]string{
			"abort.grpc": `is "OK": must be "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", ` +
				`"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", ` +
				`"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS" or "UNAUTHENTICATED"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fault.Rule{Resource: "pay", Percent: 5, Delay: 200 * ms, Until: until(0)}
			test.change(&r)
			faults := map[string]string{}
			for _, f := range fault.Kind().Faults(r) {
				faults[f.Field] = f.Message
			}
			if test.faults == nil {
				test.faults = map[string]string{}
			}
			assert.Equal(t, test.faults, faults)
		})
	}
}

func TestEndsThatAreTheSameInstantAreEqual(t *testing.T) {
	t.Parallel()
	now := time.Now().In(time.FixedZone("east", 3600)) // with a monotonic reading
	one := fault.Kind().WithDefaults(fault.Rule{Resource: "pay", Until: now})
	two := fault.Kind().WithDefaults(fault.Rule{Resource: "pay", Until: now.Round(0).UTC()})
	same := one == two
	assert.True(t, same, "%v %v", one, two)
}
