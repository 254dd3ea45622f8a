package simulate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
)

// replayCalls is the calls of a recording, ready to be replayed.
type replayCalls struct {
	*recording.Recording
	arrivals []int32       // the indexes of the calls, by when they arrived
	lasting  [][]int32     // of each resource, the calls whose length is known
	warm     clock.Instant // calls that arrive before it only warm the engines up
	seed     uint64
	texts    map[uint64]any // of hashes

	ownOrigins bool // some calls have an attribute in place of a caller

	options []core.Option // of the present call
}

func newReplayCalls(of *recording.Recording, options ReplayOptions) *replayCalls {
	c := &replayCalls{
		Recording: of, arrivals: make([]int32, len(of.Calls)), lasting: make([][]int32, len(of.Resources)),
		seed: options.Seed, texts: make(map[uint64]any), ownOrigins: of.Hashed && haveOwnOrigins(of),
	}
	from, until := of.Span()
	switch warmUp := options.WarmUp; {
	case warmUp > 0:
		c.warm = from.Add(min(warmUp, MaxDuration))
	case warmUp == 0:
		c.warm = from.Add(min(time.Second, until.Sub(from)/10))
	}
	c.findLasting()
	waits := false
	for i := range of.Calls {
		c.arrivals[i] = int32(i)
		waits = waits || of.Calls[i].Wait > 0
	}
	if waits {
		slices.SortStableFunc(c.arrivals, func(a, b int32) int {
			return cmp.Compare(of.Calls[a].Arrived(), of.Calls[b].Arrived())
		})
	}
	return c
}

// findLasting finds the calls whose length is known.
func (c *replayCalls) findLasting() {
	lasts := func(call *recording.Call) bool {
		return call.Outcome == recording.Passed && call.Duration >= 0 && !call.Cancelled
	}
	counts := make([]int, len(c.lasting))
	for i := range c.Calls {
		if lasts(&c.Calls[i]) {
			counts[c.Calls[i].Resource]++
		}
	}
	for i, count := range counts {
		c.lasting[i] = make([]int32, 0, count)
	}
	for i := range c.Calls {
		if call := &c.Calls[i]; lasts(call) {
			c.lasting[call.Resource] = append(c.lasting[call.Resource], int32(i))
		}
	}
}

// warms says whether a call came while engines warm up.
func (c *replayCalls) warms(call *recording.Call) bool { return call.Arrived() < c.warm }

// optionsOf returns the options of a call, which are valid until the next one.
func (c *replayCalls) optionsOf(call *recording.Call) []core.Option {
	o := c.options[:0]
	if call.Tokens != 1 {
		o = append(o, core.Tokens(int(call.Tokens)))
	}
	if call.Origin != 0 {
		o = append(o, core.Origin(c.Origins[call.Origin]))
	}
	if call.Priority != 0 {
		o = append(o, core.Priority(rule.Priority(call.Priority)))
	}
	if call.Inbound {
		o = append(o, core.Inbound())
	}
	if call.NoWait {
		o = append(o, core.NoWait())
	}
	if call.LongLived {
		o = append(o, core.LongLived())
	}
	for _, a := range c.AttributesOf(call) {
		key := c.Keys[a.Key]
		if key == rule.KeyOrigin && call.Origin != 0 {
			continue // it is the caller, and may be hashed here
		}
		switch v := c.valueOf(a).(type) {
		case int64:
			o = append(o, core.Int(key, v))
		case bool:
			o = append(o, core.Bool(key, v))
		case string:
			o = append(o, core.String(key, v))
		}
	}
	c.options = o
	return o
}

// valueOf returns the value of an attribute, as a text if it is a hash.
func (c *replayCalls) valueOf(a recording.Attribute) any {
	if !c.Hashed {
		return c.Values[a.Value]
	}
	text, known := c.texts[a.Value]
	if !known {
		text = fmt.Sprintf("%016x", a.Value)
		c.texts[a.Value] = text
	}
	return text
}

// ending is how a call ends that has passed in a replay.
type ending struct {
	after time.Duration   // recording.Unknown if it does not
	like  *recording.Call // whose end it is; nil for none
	drawn bool            // from other calls of the resource
}

// endingOf returns how a call ends: as it did, or as another one of its resource.
func (c *replayCalls) endingOf(index int32) ending {
	call := &c.Calls[index]
	if call.Outcome == recording.Passed {
		return ending{call.Duration, call, false}
	}
	lasting := c.lasting[call.Resource]
	if len(lasting) == 0 {
		return ending{0, nil, true}
	}
	// The same call ends alike under all rules.
	random := rand.New(rand.NewPCG(c.seed, uint64(index))) //nolint:gosec // guards no secret
	like := &c.Calls[lasting[random.IntN(len(lasting))]]
	return ending{like.Duration, like, true}
}

// deadlineOf returns when a call gives up waiting; false if that is not known.
func deadlineOf(call *recording.Call) (at clock.Instant, cancelled, ok bool) {
	switch {
	case call.Outcome == recording.GaveUp:
		return call.At, true, true
	case call.Patience > 0:
		return call.Arrived().Add(min(call.Patience, MaxDuration)), false, true
	}
	return 0, false, false
}
