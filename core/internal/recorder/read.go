package recorder

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/recording"
)

// Read returns the calls that were decided in a time, from the first instant of which all are there.
func (rec *Recorder) Read(from, until clock.Instant) *recording.Recording {
	r := reader{rec: rec, until: until}
	rec.each(r.block)
	from = max(from, rec.since, clock.Instant(rec.lost.Load())+1) // read after the blocks, some of which may be gone
	out := &r.out
	out.Calls = slices.DeleteFunc(out.Calls, func(c recording.Call) bool { return c.At < from })
	slices.SortStableFunc(out.Calls, func(a, b recording.Call) int { return cmp.Compare(a.At, b.At) })
	r.addEnds()
	out.Instances = []recording.Instance{{From: from, Until: until}}
	out.Hashed = !rec.values
	out.Resources, out.Origins, out.Keys = rec.resources.names(), rec.origins.names(), rec.keys.names()
	for _, text := range rec.rules.names() {
		kind, name := splitRule(text)
		out.Rules = append(out.Rules, recording.Rule{Kind: kind, Name: name})
	}
	r.finishValues()
	return out
}

// reader makes calls of the words of a recorder.
type reader struct {
	rec   *Recorder
	until clock.Instant
	out   recording.Recording
	ends  []endOfCall

	attributes []recording.Attribute // of calls, as words
}

// endOfCall is the end of a call, or what it was charged with.
type endOfCall struct {
	resource uint16
	start    clock.Instant
	after    time.Duration
	flags    Flags
	settles  bool
	tokens   int32
}

// block reads the records of a block.
func (r *reader) block(base clock.Instant, words []uint64) {
	for len(words) > 0 {
		first, second := words[0], words[1]
		at := base.Add(time.Duration(first >> instantShift))
		pairs, resource := first>>lengthShift&lengthMask, uint16(first>>resourceShift)
		switch kind := first & recordTypes; kind {
		case recordEnded:
			after := time.Duration(second >> durationShift)
			r.ends = append(r.ends, endOfCall{
				resource: resource, start: at.Add(-after), after: after, flags: endFlags(second),
			})
		case recordSettled:
			after := time.Duration(words[4])
			r.ends = append(r.ends, endOfCall{
				resource: resource, start: at.Add(-after), after: after, settles: true, tokens: int32(second >> valueShift),
			})
		default:
			if at <= r.until {
				r.decided(recording.Outcome(kind), resource, at, second, words[2:2*pairs])
			}
		}
		words = words[2*pairs:]
	}
}

// endFlags returns the flags of an end.
func endFlags(end uint64) Flags {
	return Flags(end >> endFlagShift & (1<<(durationShift-endFlagShift) - 1))
}

// decided reads what was decided on a call.
func (r *reader) decided(outcome recording.Outcome, resource uint16, at clock.Instant, second uint64, more []uint64) {
	c := recording.Call{
		At: at, Resource: resource, Tokens: 1, Duration: recording.Unknown, SettledAfter: recording.Unknown, Outcome: outcome,
	}
	if len(more) > 0 {
		r.more(&c, more[0], more[2:])
	}
	switch {
	case outcome == recording.Refused:
		c.Rule = uint16(second >> valueShift)
	case outcome == recording.Passed && second != 0:
		c.Duration = time.Duration(second >> durationShift)
		endFlags(second).addTo(&c)
	}
	r.out.Calls = append(r.out.Calls, c)
}

// more reads what few calls have.
func (r *reader) more(c *recording.Call, more uint64, rest []uint64) {
	c.Tokens = int32(more >> tokenShift & (1<<(originShift-tokenShift) - 1))
	c.Origin = uint16(more >> originShift & (1<<originBits - 1))
	c.Priority = int8(more>>priorityShift&7) - plainPriority
	Flags(more >> flagShift & 7).addTo(c)
	if more>>waitShift&1 != 0 {
		c.Wait, rest = time.Duration(rest[0]), rest[1:]
	}
	if more>>patienceShift&1 != 0 {
		c.Patience, rest = time.Duration(rest[0]), rest[1:]
	}
	count := int(more >> countShift & 7)
	if count == 0 {
		return
	}
	c.FirstAttribute, c.AttributeCount = uint32(len(r.attributes)), uint8(count)
	for _, word := range rest[:count] {
		r.attributes = append(r.attributes, recording.Attribute{Key: uint16(word >> keyShift), Value: word & valueMask})
	}
}

// addEnds gives the calls the ends that are records of their own. Calls of a resource that passed in the same nanosecond get theirs in
// any order.
func (r *reader) addEnds() {
	if len(r.ends) == 0 {
		return // all are beside the decisions, as most are
	}
	slices.SortStableFunc(r.ends, func(a, b endOfCall) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.resource, b.resource))
	})
	for i := range r.out.Calls {
		c := &r.out.Calls[i]
		if c.Outcome != recording.Passed {
			continue
		}
		at, _ := slices.BinarySearchFunc(r.ends, c, func(e endOfCall, c *recording.Call) int {
			return cmp.Or(cmp.Compare(e.start, c.At), cmp.Compare(e.resource, c.Resource))
		})
		r.addEnd(c, r.ends[at:])
	}
}

// addEnd gives a call the first of the ends that is its own and that no other call has.
func (r *reader) addEnd(c *recording.Call, ends []endOfCall) {
	for i := range ends {
		end := &ends[i]
		switch {
		case end.start != c.At || end.resource != c.Resource:
			return
		case end.after < 0: // another call has it
		case end.settles && end.after >= c.SettledAfter:
			c.SettledAfter, c.Settled = end.after, end.tokens
			end.after = -1
		case !end.settles && c.Duration == recording.Unknown:
			c.Duration = end.after
			end.flags.addTo(c)
			end.after = -1
		}
	}
}

// finishValues gives the calls that are returned their attributes: with hashes of the values that nobody can
// compute without the secret, or with indexes of a list of the values as they are.
func (r *reader) finishValues() {
	final, known := r.hashes(), make(map[uint64]uint64)
	if r.rec.values {
		final = r.indexes()
	}
	for i := range r.out.Calls {
		c := &r.out.Calls[i]
		words := r.attributes[c.FirstAttribute:][:c.AttributeCount]
		c.FirstAttribute = uint32(len(r.out.Attributes))
		for _, a := range words {
			value, found := known[a.Value]
			if !found {
				value = final(a.Value)
				known[a.Value] = value
			}
			r.out.Attributes = append(r.out.Attributes, recording.Attribute{Key: a.Key, Value: value})
		}
	}
}

// indexes returns a function that adds the value of a word to the list of values and returns its index.
func (r *reader) indexes() func(word uint64) uint64 {
	texts, integers := r.rec.texts.names(), r.rec.integers.names()
	return func(word uint64) uint64 {
		r.out.Values = append(r.out.Values, plainValue(word, texts, integers))
		return uint64(len(r.out.Values) - 1)
	}
}

// hashes returns a function that hashes words with the secret.
func (r *reader) hashes() func(word uint64) uint64 {
	mac := hmac.New(sha256.New, r.rec.secret[:])
	var sum [sha256.Size]byte
	return func(word uint64) uint64 {
		mac.Reset()
		_, _ = mac.Write(binary.LittleEndian.AppendUint64(nil, word))
		return binary.LittleEndian.Uint64(mac.Sum(sum[:0]))
	}
}

// plainValue returns the value that a word stands for.
func plainValue(word uint64, texts, integers []string) any {
	index := word >> valueTypeBits
	switch word & (1<<valueTypeBits - 1) {
	case valueIsNumber:
		number, err := strconv.ParseInt(integers[index], 10, 64)
		if err != nil {
			return recording.Other
		}
		return number
	case valueIsFalse:
		return false
	case valueIsTrue:
		return true
	}
	return texts[index] // it is a text
}
