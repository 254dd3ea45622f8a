package simulate

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/rules"
)

// The bounds of a simulation, so that a slip in a load takes neither all memory
// nor all day.
const (
	MaxRate     = 1e9                // calls per second of a stream
	MaxDuration = 7 * 24 * time.Hour // of virtual time
	MaxArrivals = 10_000_000         // calls of all streams
	MaxEvents   = 2_000_000          // the same where each is reported: about 100 bytes of memory a call
	MaxRows     = 1_000_000          // seconds × resources
	MaxPending  = 1_000_000          // calls that wait or are served at one time: up to 1 KiB of memory each
)

// Validate returns every mistake in the load, none when it is sound. What
// depends on the options besides is told by [Run]: whether the duration is
// missing, or the load too large.
func (l Load) Validate() []Fault {
	var faults Faults
	faults.check(len(l.Streams) > 0, WholeLoad, "streams", "is missing: a load has at least one stream")
	for i, stream := range l.Streams {
		stream.validate(func(ok bool, field, format string, args ...any) {
			faults.check(ok, i, field, format, args...)
		})
	}
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
	check(s.ServiceTime >= 0 && s.ServiceTime <= MaxDuration, "serviceTime",
		"is %v: must be from 0s to %v", s.ServiceTime, MaxDuration)
	for i, arg := range s.Args {
		check(isPlain(arg), "args",
			"has %T in place %d: must be strings, booleans or numbers of the built-in types", arg, i+1)
	}
}

func (s Stream) validateName(check checker, field, name string) {
	check(len(name) <= rules.MaxNameLength, field,
		"is %d bytes long: the most is %d", len(name), rules.MaxNameLength)
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
		check(s.Rate > 0 && s.Rate <= MaxRate, "rate",
			"is %v: must be more than 0 and at most %.0f calls per second", s.Rate, MaxRate)
	}
	check(s.Shape == "" || s.Shape == Even || s.Shape == Poisson, "shape",
		"is %.60q: must be %q or %q", s.Shape, Even, Poisson)
	check(s.From >= 0 && s.From <= MaxDuration, "from", "is %v: must be from 0s to %v", s.From, MaxDuration)
	if s.Until != 0 {
		check(s.Until > s.From && s.Until <= MaxDuration, "until",
			"is %v: must be later than from (%v) and at most %v", s.Until, s.From, MaxDuration)
	}
}

// isPlain says whether an engine takes the value for an argument of a call.
func isPlain(arg any) bool {
	switch arg.(type) {
	case string, bool,
		int, int8, int16, int32, int64,
		uint, uint8, uint16, uint32, uint64,
		float32, float64:
		return true
	}
	return false
}
