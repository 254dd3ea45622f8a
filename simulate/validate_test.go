package simulate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestMistakesInAStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", rules.MaxNameLength+1)
	sound := func(change func(s *simulate.Stream)) simulate.Stream {
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
		"from beyond the end": {func(s *simulate.Stream) { s.From = 200 * time.Hour; s.Until = 0 }, "from", "to 168h0m0s"},
		"until before from":   {func(s *simulate.Stream) { s.From = time.Second }, "until", "later than from (1s)"},
		"negative until":      {func(s *simulate.Stream) { s.Until = -time.Second }, "until", "is -1s"},
		"until too late":      {func(s *simulate.Stream) { s.Until = 200 * time.Hour }, "until", "at most 168h0m0s"},
		"negative tokens":     {func(s *simulate.Stream) { s.Tokens = -1 }, "tokens", "is -1: must be from 1 to 2147483647"},
		"too many tokens":     {func(s *simulate.Stream) { s.Tokens = math.MaxInt32 + 1 }, "tokens", "must be from 1"},
		"negative service":    {func(s *simulate.Stream) { s.ServiceTime = -1 }, "serviceTime", "must be from 0s"},
		"service too long":    {func(s *simulate.Stream) { s.ServiceTime = 200 * time.Hour }, "serviceTime", "168h0m0s"},
		"arguments":           {func(s *simulate.Stream) { s.Args = []any{1, []int{2}} }, "args", "has []int in place 2"},
		"no argument":         {func(s *simulate.Stream) { s.Args = []any{nil} }, "args", "has <nil> in place 1"},
		"rate and times":      {func(s *simulate.Stream) { s.Until = 0; s.Times = at(0) }, "rate", "cannot go with times"},
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
			func(s *simulate.Stream) { *s = simulate.Stream{Resource: "r", Times: []time.Duration{200 * time.Hour}} },
			"times", "has 200h0m0s in place 1: must be from 0s to 168h0m0s",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			load := simulate.Load{Streams: []simulate.Stream{sound(func(*simulate.Stream) {}), sound(test.change)}}
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

func TestSoundLoadsHaveNoFaults(t *testing.T) {
	t.Parallel()
	load := simulate.Load{Streams: []simulate.Stream{
		{Resource: "r", Rate: 0.001},
		{Resource: strings.Repeat("x", rules.MaxNameLength), Rate: simulate.MaxRate, Shape: simulate.Poisson},
		{Resource: "é", Times: at(0), Tokens: math.MaxInt32, Origin: "other", ServiceTime: time.Hour},
		{Resource: "r", Times: []time.Duration{simulate.MaxDuration}},
		{Resource: "r", Rate: 1, Args: []any{"a", true, 1, int8(1), uint64(1), 1.5, float32(1)}},
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
		"simulate: streams[1] from is -1ns: must be from 0s to 168h0m0s",
		"simulate: duration is -1s: must be longer than 0s and at most 168h0m0s",
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
			simulate.Options{Duration: 200 * time.Hour},
			[]string{"duration is 200h0m0s: must be longer than 0s and at most 168h0m0s"},
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
			simulate.Options{Duration: 40 * time.Hour},
			[]string{"duration is 40h0m0s: for 7 resources that makes more than 1000000 rows"},
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
