package hotparam

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

func isOfFleet(r *Rule) bool { return r.Scope == rule.ScopeFleet }

// validateFleet judges how instances share the limits of values.
func (r *Rule) validateFleet(f *rule.Faults) {
	if !settings.ValidateFleet(f, r.Scope, r.Fleet) {
		return
	}
	const onlyInstance = "remove scope, and each instance has the limit"
	switch {
	case r.Concurrency != 0:
		r.validatePlaces(f)
		return
	case r.Algorithm == Throttle:
		f.Add("scope", "is %q, but instances do not space the calls of a value together: set algorithm to %q or %q, or %s",
			rule.ScopeFleet, TokenBucket, SlidingWindow, onlyInstance)
	}
	switch r.Algorithm {
	case FixedWindow:
		settings.ValidateAsked(f, r.Fleet, r.Shadow)
		return
	case Prepaid:
		settings.ValidateAskedBalance(f, r.Fleet, r.Shadow)
		return
	}
	if r.Fleet.Mode != fleet.ModeLease && r.Fleet.Mode != fleet.ModeAsk {
		f.Add("fleet.mode", "is %q: instances share limits for each value by %q or %q",
			r.Fleet.Mode, fleet.ModeLease, fleet.ModeAsk)
	}
}

// validatePlaces judges how instances share the places of values.
func (r *Rule) validatePlaces(f *rule.Faults) {
	if r.Fleet.Mode != fleet.ModeAsk {
		f.Add("fleet.mode", "is %q: instances share places of values by %q; remove fleet.mode, or set it to that", r.Fleet.Mode, fleet.ModeAsk)
	}
	if r.Shadow {
		f.Add("shadow", "is true, but a shadow rule does not wait for answers, and only the fleet knows which places are free: "+
			"set scope to %q meanwhile", rule.ScopeInstance)
	}
	if r.MaxAge != 0 {
		f.Add("maxAge", "stands beside scope %q, where places are given back when calls end, or their instance does: remove it, or remove scope",
			rule.ScopeFleet)
	}
}

// defaultMode is how instances share the limits if the rule does not say it.
func (r *Rule) defaultMode() fleet.Mode {
	if r.Algorithm == FixedWindow || r.Algorithm == Prepaid || r.Concurrency != 0 {
		return fleet.ModeAsk
	}
	return fleet.ModeLease
}

// decisionMode is the mode of the rule, but for shadow rules, which do not wait for answers.
func (r *Rule) decisionMode() fleet.Mode {
	if r.Shadow {
		return fleet.ModeLease
	}
	return r.Fleet.Mode
}

// fleetTerms returns what the fleet is told of a limit.
func (c *compiled) fleetTerms(key string, limit float64) fleet.Terms {
	terms := fleet.Terms{Key: key, Limit: limit, Window: c.rule.Calendar.Length(c.rule.Window), Calendar: c.calendar}
	if c.rule.Algorithm == TokenBucket {
		terms.Burst = c.rule.burst(limit)
	} else {
		terms.Burst = max(1, limit/buckets)
	}
	return terms
}

// operation returns how the backend decides on calls of mode ask.
func (r *Rule) operation() fleet.Operation {
	switch r.Algorithm {
	case SlidingWindow:
		return fleet.AskSlidingLog
	case FixedWindow:
		return fleet.AskFixedWindow
	case Prepaid:
		return fleet.AskBalance
	}
	return fleet.AskTokenBucket
}

// digest is what stands for a value in the fleet. It is the same on all instances, but
// differs between rules. Nobody can find two values with the same one.
type digest [16]byte

// digestOf returns the digest of a value of the limit that has a key. Without an allocation, unless they are long.
func digestOf(key string, value rule.Attribute) digest {
	var short [256]byte
	sum := sha256.Sum256(appendValue(append(append(short[:0], key...), 0), value))
	return digest(sum[:len(digest{})])
}

// appendValue appends a value so that different ones differ, whatever their types.
func appendValue(b []byte, value rule.Attribute) []byte {
	if text, ok := value.Text(); ok {
		return append(appendTagged(b, 't', uint64(len(text))), text...)
	} else if number, ok := value.Number(); ok {
		return appendTagged(b, 'n', uint64(number))
	} else if truth, ok := value.Boolean(); ok {
		return appendTagged(b, 'b', uint64(len(strconv.FormatBool(truth))))
	}
	parts := value.Parts()
	b = appendTagged(b, 'c', uint64(len(parts)))
	for _, part := range parts {
		b = appendValue(b, part)
	}
	return b
}

func appendTagged(b []byte, tag byte, word uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, tag), word)
}

// keyOf returns the key of the value's limit in the fleet.
func (d digest) keyOf(key string) string { return key + "/" + hex.EncodeToString(d[:]) }

// cells is how many limits the values share that find no slot: for each limit that values
// have, a part of them.
const cells = 256

// cellKey says which of them it is.
type cellKey struct {
	limit float64
	index int
}

// cellOf returns the cell of a value. It is the same on all instances, so that a value has
// one cell in the whole fleet.
func (c *compiled) cellOf(d digest, class int) cellKey {
	n := binary.LittleEndian.Uint64(d[8:]) % uint64(c.cellsEach)
	return cellKey{c.limits[class], int(n)}
}

// cellKeyIn returns the key of a cell in the fleet.
func (k cellKey) keyIn(key string) string {
	return key + "/cell-" + strconv.FormatFloat(k.limit, 'g', -1, 64) + "-" + strconv.Itoa(k.index)
}
