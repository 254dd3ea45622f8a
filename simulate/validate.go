package simulate

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/rule"
)

// The bounds of a simulation, so that a slip in a load takes neither all memory
// nor all day.
const (
	maxRate       = 1e9                 // calls per second of a stream
	MaxDuration   = 45 * 24 * time.Hour // of virtual time: more than a month and its ends
	maxArrivals   = 10_000_000          // calls of all streams
	maxEvents     = 2_000_000           // the same where each is reported: about 200 bytes of memory a call
	maxRows       = 4_000_000           // seconds × resources: about 150 bytes of memory each
	maxPending    = 1_000_000           // calls that wait or are served at one time: up to 1 KiB of memory each
	maxWorkers    = 1_000_000           // of a server
	maxSlowdown   = 1000                // of a server: each waiting call makes service 1000 times slower
	maxTail       = 14                  // P99 of a lognormal service time, in means: no such distribution goes beyond 14.97
	maxRetries    = 10                  // of a call
	maxSlowFactor = 10_000              // of a bimodal service time
	maxTimeSlices = 1_000_000           // of a call
	maxValues     = 10_000_000          // different values of an attribute
	MaxInstances  = 1000                // of the service
	maxNodes      = 100_000             // resources × instances, of more than one instance: some 5 KiB of memory each
)

// The time slices and quotas that a server may have are about those of operating systems.
const (
	minTimeSlice   = 100 * time.Microsecond
	maxTimeSlice   = time.Second
	minQuotaTime   = time.Millisecond // also the shortest period
	maxQuotaPeriod = time.Second
)

// Validate returns every mistake in the load, none when it is valid. [Run] also
// reports what depends on the options: whether the duration is missing, or the
// load too large.
func (l Load) Validate() []Fault {
	var faults Faults
	faults.check(len(l.Streams) > 0, wholeLoad, "streams", "is missing: a load has at least one stream")
	for i, stream := range l.Streams {
		stream.validate(func(ok bool, field, format string, args ...any) {
			faults.check(ok, i, field, format, args...)
		})
	}
	whole := func(ok bool, field, format string, args ...any) {
		faults.check(ok, wholeLoad, field, format, args...)
	}
	begin := l.start()
	whole(begin.Unix() >= 0 && begin.UTC().Year() < 2200 && begin.Nanosecond() == 0, "start",
		"is %v: must be a whole second from 1970 to 2199", begin.UTC())
	l.validateServers(whole)
	l.validateServed(&faults)
	l.validateSignals(whole)
	l.validateRecharges(whole)
	l.Fleet.validate(whole)
	return faults
}

// checker notes a mistake in a field unless ok holds.
type checker func(ok bool, field, format string, args ...any)

func (s Stream) validate(check checker) {
	check(s.Resource != "", "resource", "is missing: name the resource that is called")
	s.validateName(check, "resource", s.Resource)
	s.validateName(check, "origin", s.Origin)
	if len(s.Times) > 0 {
		s.validateTimes(check)
	} else {
		s.validateRate(check)
	}
	check(s.Tokens >= 0 && s.Tokens <= math.MaxInt32, "tokens",
		"is %d: must be from 1 to %d", s.Tokens, math.MaxInt32)
	if s.Cost != nil {
		check(s.Tokens == 0, "tokens", "has no effect beside cost: remove it")
		s.Cost.validate(check)
	}
	check(s.ServiceTime >= 0 && s.ServiceTime <= MaxDuration, "serviceTime",
		"is %v: must be from 0s to %v", s.ServiceTime, MaxDuration)
	check(s.Fails >= 0 && s.Fails <= 1, "fails", "is %v: must be a share from 0 to 1", s.Fails)
	check(s.Timeout >= 0 && s.Timeout <= MaxDuration, "timeout",
		"is %v: must be from 0s (none) to %v", s.Timeout, MaxDuration)
	check(s.Priority <= rule.PriorityCritical && s.Priority >= rule.PrioritySheddable, "priority",
		"is %d: must be from rule.PrioritySheddable to rule.PriorityCritical", int(s.Priority))
	check(s.Retries >= 0 && s.Retries <= maxRetries, "retries", "is %d: must be from 0 to %d", s.Retries, maxRetries)
	check(s.RetryDelay >= 0 && s.RetryDelay <= MaxDuration, "retryDelay",
		"is %v: must be from 0s to %v", s.RetryDelay, MaxDuration)
	check(s.RetryDelay == 0 || s.Retries > 0, "retryDelay", "has no effect without retries: remove it")
	s.validatePhases(check)
	s.validateAttrs(check)
}

func (s Stream) validatePhases(check checker) {
	before := time.Duration(0)
	for i, p := range s.Phases {
		field := func(name string) string { return fmt.Sprintf("phases[%d].%s", i, name) }
		last := i == len(s.Phases)-1
		switch {
		case p.Until != 0:
			check(p.Until > before && p.Until <= MaxDuration, field("until"),
				"is %v: must be later than the phase before it (%v) and at most %v", p.Until, before, MaxDuration)
			before = max(before, p.Until)
		default:
			check(last, field("until"), "is missing: only the last phase may go on to the end")
		}
		if v := p.ServiceTime; v != nil {
			check(*v >= 0 && *v <= MaxDuration, field("serviceTime"), "is %v: must be from 0s to %v", *v, MaxDuration)
		}
		if v := p.Fails; v != nil {
			check(*v >= 0 && *v <= 1, field("fails"), "is %v: must be a share from 0 to 1", *v)
		}
	}
}

func (s Stream) validateAttrs(check checker) {
	seen := make(map[string]bool)
	for _, a := range s.Attrs {
		field := "attrs." + a.Name
		check(a.Name != "" && len(a.Name) <= rule.MaxNameLength && utf8.ValidString(a.Name), "attrs",
			"has an attribute called %.60q: must be a name of at most %d bytes in UTF-8", a.Name, rule.MaxNameLength)
		check(!seen[a.Name], field, "is given twice: remove one")
		seen[a.Name] = true
		for i, v := range a.Values {
			_, plain := plainValue(v)
			check(plain, field, "has %T in place %d: must be text, a whole number or a boolean", v, i+1)
			if text, ok := v.(string); ok {
				check(utf8.ValidString(text) && len(text) <= rule.MaxNameLength, field,
					"has %.60q in place %d: must be at most %d bytes of UTF-8", text, i+1, rule.MaxNameLength)
			}
		}
		if len(a.Values) > 0 {
			check(a.Count == 0 && a.Shape == "", field, "has a count or a shape beside its values: remove one of the two")
			continue
		}
		check(a.Count > 0 && a.Count <= maxValues, field+".count", "is %d: must be from 1 to %d, or give values", a.Count, maxValues)
		check(a.Shape == "" || a.Shape == Cycle || a.Shape == Uniform || a.Shape == Zipf, field+".shape",
			"is %.60q: must be %q, %q or %q", a.Shape, Cycle, Uniform, Zipf)
	}
}

func (s Stream) validateName(check checker, field, name string) {
	check(len(name) <= rule.MaxNameLength, field,
		"is %d bytes long: the most is %d", len(name), rule.MaxNameLength)
	check(utf8.ValidString(name), field, "is %.60q: must be UTF-8", name)
}

func (s Stream) validateTimes(check checker) {
	for i, at := range s.Times {
		check(at >= 0 && at <= MaxDuration, "times",
			"has %v in place %d: must be from 0s to %v", at, i+1, MaxDuration)
	}
	check(s.Rate == 0, "rate", "cannot go with times: remove one of the two")
	check(s.Shape == "", "shape", "has no effect with times: remove it")
	check(s.From == 0, "from", "has no effect with times: remove it")
	check(s.Until == 0, "until", "has no effect with times: remove it")
}

func (s Stream) validateRate(check checker) {
	if s.Rate == 0 {
		check(false, "rate", "is missing: give a rate of more than 0 calls per second, or times")
	} else {
		check(s.Rate > 0 && s.Rate <= maxRate, "rate",
			"is %v: must be more than 0 and at most %.0f calls per second", s.Rate, maxRate)
	}
	check(s.Shape == "" || s.Shape == Even || s.Shape == Poisson, "shape",
		"is %.60q: must be %q or %q", s.Shape, Even, Poisson)
	check(s.From >= 0 && s.From <= MaxDuration, "from", "is %v: must be from 0s to %v", s.From, MaxDuration)
	if s.Until != 0 {
		check(s.Until > s.From && s.Until <= MaxDuration, "until",
			"is %v: must be later than from (%v) and at most %v", s.Until, s.From, MaxDuration)
	}
}
