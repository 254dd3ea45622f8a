package simulate

import (
	"time"

	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// Options are how a load is run. The zero value is a good one.
type Options struct {
	// Duration is how long the load runs; calls that would arrive then or later
	// do not. Defaults to the second after the one in which the last call
	// arrives, so that its row is the last. At most [MaxDuration].
	Duration time.Duration

	// Instances is the number of instances of the service that share the load, at most
	// [MaxInstances]; see [Fleet]. Each has an engine of its own with the same rules, and
	// servers of its own. Defaults to 1.
	Instances int

	// Events asks for a row for each call, see [Result].
	Events bool

	// OnEvent, when set, is called for each call when it was refused or has ended, in
	// that order, by the goroutine that runs: for those who would rather not have all
	// rows of Events in memory. The Events need not be asked for.
	OnEvent func(Event)

	// Kinds are kinds of rules beside those that come with Penstock, see
	// core.Config.Kinds.
	Kinds []rule.Definition

	// Lists are the lists that rules refer to by name. Defaults to none.
	Lists *list.Registry

	// Progress, when set, is called once for each virtual second that is over,
	// with how much of the duration is done, by the goroutine that runs.
	Progress func(done, of time.Duration)
}

// complete returns the options with the duration filled in, or what is wrong with
// them and the load.
func (o Options) complete(load Load) (Options, error) {
	faults := Faults(load.Validate())
	faults.check(o.Duration >= 0 && o.Duration <= MaxDuration, wholeLoad, "duration",
		"is %v: must be longer than 0s and at most %v", o.Duration, MaxDuration)
	faults.check(o.Instances >= 0 && o.Instances <= MaxInstances, wholeLoad, "instances",
		"is %d: must be from 1 to %d", o.Instances, MaxInstances)
	o.Instances = max(1, o.Instances)
	end := o.Duration
	if end == 0 {
		end = endless
		for i, s := range load.Streams {
			faults.check(len(s.Times) > 0 || s.Until != 0, i, "until",
				"is missing: without a duration, the stream would never end")
		}
	}
	if len(faults) > 0 {
		return o, faults
	}
	most, why := int64(maxArrivals), ""
	if o.Events {
		most, why = maxEvents, " when each is reported"
	}
	count, last := countArrivals(load, end, most)
	faults.check(count <= most, wholeLoad, "streams",
		"make more than %d calls: that is the most%s; lower the rates or shorten the time", most, why)
	if o.Duration == 0 {
		o.Duration = last.Truncate(time.Second) + time.Second
	}
	resources := len(resourcesOf(load))
	faults.check(o.seconds()*resources <= maxRows, wholeLoad, "duration",
		"is %v: for %d resources that makes more than %d rows of a second; shorten it", o.Duration, resources, maxRows)
	faults.check(o.Instances == 1 || o.Instances*resources <= maxNodes, wholeLoad, "instances",
		"is %d: with %d resources on each that is more than %d in all; lower one of the two", o.Instances, resources, maxNodes)
	if len(faults) > 0 {
		return o, faults
	}
	return o, nil
}

// seconds is how many seconds the duration touches.
func (o Options) seconds() int { return int((o.Duration + time.Second - 1) / time.Second) }
