package adaptive

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// ownField is a field that belongs to one strategy only.
type ownField struct {
	path  string
	of    Strategy
	given func(*Rule) bool
	check func(*Rule) string // what is wrong with a value that was given; "" if nothing is
}

// ownFields are the fields that belong to one strategy only.
func ownFields() []ownField {
	return []ownField{
		{"maxDelay", Latency, func(r *Rule) bool { return r.MaxDelay != 0 }, func(r *Rule) string {
			return durationFault(r.MaxDelay, minMaxDelay, maxMaxDelay)
		}},
		{"minLimit", Latency, func(r *Rule) bool { return r.MinLimit != 0 }, func(r *Rule) string {
			return callsFault(r.MinLimit)
		}},
		{"maxLimit", Latency, func(r *Rule) bool { return r.MaxLimit != 0 }, maxLimitFault},
		{"initialLimit", Latency, func(r *Rule) bool { return r.InitialLimit != 0 }, initialLimitFault},
		{"cpu", Threshold, func(r *Rule) bool { return r.CPU != 0 }, func(r *Rule) string {
			return shareFault(r.CPU)
		}},
		{"load", Threshold, func(r *Rule) bool { return r.Load != 0 }, func(r *Rule) string {
			return positiveFault(r.Load, maxLoad)
		}},
		{"memory", Threshold, func(r *Rule) bool { return r.Memory != 0 }, func(r *Rule) string {
			return shareFault(r.Memory)
		}},
		{"schedulerDelay", Threshold, func(r *Rule) bool { return r.SchedulerDelay != 0 }, func(r *Rule) string {
			return durationFault(r.SchedulerDelay, minSchedulerDelay, MaxDuration)
		}},
		{"concurrency", Threshold, func(r *Rule) bool { return r.Concurrency != 0 }, func(r *Rule) string {
			return callsFault(r.Concurrency)
		}},
		{"qps", Threshold, func(r *Rule) bool { return r.QPS != 0 }, func(r *Rule) string {
			return qpsFault(r.QPS)
		}},
		{"avgRT", Threshold, func(r *Rule) bool { return r.AvgRT != 0 }, func(r *Rule) string {
			return durationFault(r.AvgRT, minAvgRT, MaxDuration)
		}},
	}
}

// validate returns the mistakes in the fields that only this kind has.
func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	if r.Strategy != Latency && r.Strategy != Threshold {
		f.Add("strategy", "is %q: must be %q or %q", r.Strategy, Latency, Threshold)
		return f // which other fields there may be depends on it
	}
	thresholds := 0
	for _, field := range ownFields() {
		if !field.given(r) {
			continue
		}
		if field.of != r.Strategy {
			f.Add(field.path, "has no effect with strategy %q: remove it, or set strategy to %q", r.Strategy, field.of)
			continue
		}
		thresholds++
		if fault := field.check(r); fault != "" {
			f.Add(field.path, "%s", fault)
		}
	}
	if r.Strategy == Threshold && thresholds == 0 {
		f.Add("strategy", "is %q without a threshold: give at least one of cpu, load, memory, schedulerDelay, concurrency, qps and avgRT",
			r.Strategy)
	}
	return f
}

func maxLimitFault(r *Rule) string {
	if fault := callsFault(r.MaxLimit); fault != "" {
		return fault
	}
	if r.MaxLimit < r.MinLimit && r.MinLimit <= maxLimit {
		return fmt.Sprintf("is %d: must be at least minLimit, %d", r.MaxLimit, r.MinLimit)
	}
	return ""
}

func initialLimitFault(r *Rule) string {
	if fault := callsFault(r.InitialLimit); fault != "" {
		return fault
	}
	sound := callsFault(r.MinLimit) == "" && maxLimitFault(r) == ""
	if sound && !rule.Within(r.InitialLimit, r.MinLimit, r.MaxLimit) {
		return fmt.Sprintf("is %d: must be from minLimit, %d, to maxLimit, %d", r.InitialLimit, r.MinLimit, r.MaxLimit)
	}
	return ""
}

func callsFault(value int) string {
	if rule.Within(value, 1, maxLimit) {
		return ""
	}
	return fmt.Sprintf("is %d: must be from 1 to %d calls under way", value, maxLimit)
}

func shareFault(value float64) string {
	if value > 0 && value <= 1 {
		return ""
	}
	return fmt.Sprintf("is %v: must be a share from more than 0 to 1, such as 0.8", value)
}

func positiveFault(value, most float64) string {
	if value > 0 && value <= most {
		return ""
	}
	return fmt.Sprintf("is %v: must be more than 0 and at most %v", value, most)
}

func qpsFault(value float64) string {
	if value >= 1 && value <= maxQPS {
		return ""
	}
	return fmt.Sprintf("is %v: must be from 1 to %v calls a second", value, maxQPS)
}

func durationFault(value, least, most time.Duration) string {
	if rule.Within(value, least, most) {
		return ""
	}
	return fmt.Sprintf("is %v: must be from %v to %v", value, least, most)
}
