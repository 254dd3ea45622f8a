// Package recorder records calls while it is on: what was decided on each, and how it ended. It keeps them as
// words in a ring of bounded memory, which calls write without waiting for each other, and numbers their names.
// docs/recording.md says what a recording then has.
package recorder

import (
	"hash/maphash"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
)

// Recorder records calls.
type Recorder struct {
	ring

	values  bool          // are recorded as they are
	since   clock.Instant // when it was switched on
	secret  [32]byte      // of the hashes of values
	seed    maphash.Seed
	numbers uint64 // a part of the secret, for values that are numbers

	resources, origins, rules, keys table
	texts, integers                 table // values as they are
}

// The bounds of the tables of names. Their numbers have so many bits in words.
const (
	nameBits   = 16
	originBits = 12
	keyBits    = 8
	maxValues  = 1 << 18

	// MaxKeys is of how many attributes a call is recorded.
	MaxKeys = 7
)

// What more there is of a decision, in the word after the first pair: the tag, the tokens, the number of the
// origin, the priority, flags, what words follow.
const (
	tokenShift    = tagBits
	originShift   = tokenShift + 31
	priorityShift = originShift + originBits // three bits
	flagShift     = priorityShift + 3        // those that are known then
	waitShift     = flagShift + 3
	patienceShift = waitShift + 1
	countShift    = patienceShift + 1 // three bits: of attributes

	plainPriority = 2 // of a call without options
)

// The word of an attribute: its value, then the number of its key.
const (
	keyShift      = 64 - keyBits
	valueMask     = 1<<keyShift - 1
	valueTypeBits = 2 // of values as they are, the lowest
)

// New returns a recorder that keeps so many bytes of calls, and values as they are or, by a secret, hashed.
func New(bytes int, values bool, secret [32]byte, c clock.Clock) *Recorder {
	r := &Recorder{values: values, since: c.Now(), secret: secret, seed: maphash.MakeSeed()}
	r.numbers = maphash.Bytes(r.seed, secret[:])
	r.init(bytes, c)
	r.resources.init(1 << nameBits)
	r.rules.init(1 << nameBits)
	r.origins.init(1 << originBits)
	r.keys.init(1 << keyBits)
	r.texts.init(maxValues)
	r.integers.init(maxValues)
	return r
}

// Since returns when the recorder was switched on.
func (rec *Recorder) Since() clock.Instant { return rec.since }

// Resource is the name of a resource, and the place where its number is remembered.
type Resource struct {
	Place *Place
	Name  string
}

// Rule is the same of a rule.
type Rule struct {
	Place *Place
	Key   *rule.Key
}

// Passed records a call of one token that has passed at once, and of which nothing else is known. It returns
// where that is, for its end.
func (rec *Recorder) Passed(r Resource, now clock.Instant) uint32 {
	n := r.Place.known.Load()
	if !n.isOf(&rec.resources) {
		n = rec.resources.learn(r.Place, r.Name) // as in indexOf, whose call is 1 ns
	}
	at := rec.claim(now, 1)
	rec.write(at, n.index<<resourceShift, 0, now)
	return at.index
}

// Refused is Passed for a call that a rule has refused. That it is written out, as Passed is, is 3 ns.
func (rec *Recorder) Refused(r Resource, by Rule, now clock.Instant) {
	n, refusing := r.Place.known.Load(), by.Place.known.Load()
	if !n.isOf(&rec.resources) {
		n = rec.resources.learn(r.Place, r.Name)
	}
	if !refusing.isOf(&rec.rules) {
		refusing = rec.learnRule(by)
	}
	at := rec.claim(now, 1)
	rec.write(at, uint64(recording.Refused)|n.index<<resourceShift, refusing.index<<valueShift, now)
}

// Decision is what was decided on a call of which more is known.
type Decision struct {
	Outcome  recording.Outcome
	By       Rule // that has refused the call; the zero value if it was not
	At       clock.Instant
	Tokens   int32
	Origin   string
	Priority rule.Priority
	Flags    Flags // that are known now

	Waited     bool
	Wait       time.Duration
	WasBounded bool // by the deadline of its context
	Patience   time.Duration
	attributes [MaxKeys]uint64
	count      int
}

// Key is the key of an attribute, with the place where its number is remembered.
type Key struct {
	Name  string
	place Place
}

// AddAttribute adds an attribute of the call to a decision, which has at most [MaxKeys].
func (rec *Recorder) AddAttribute(d *Decision, key *Key, a rule.Attribute) {
	d.attributes[d.count] = rec.valueOf(a) | rec.keys.indexOf(&key.place, key.Name)<<keyShift
	d.count++
}

// Decided records a decision, and returns where.
func (rec *Recorder) Decided(r Resource, d *Decision) uint32 {
	first := uint64(d.Outcome) | rec.resources.indexOf(r.Place, r.Name)<<resourceShift
	more, second := uint64(d.Priority+plainPriority)<<priorityShift|uint64(d.Flags)<<flagShift, uint64(0)
	if d.Origin != "" {
		more |= rec.origins.find(d.Origin).index << originShift
	}
	if d.By.Place != nil {
		refusing := d.By.Place.known.Load()
		if !refusing.isOf(&rec.rules) {
			refusing = rec.learnRule(d.By)
		}
		second = refusing.index << valueShift
	}
	var words [2*maxPairs - 2]uint64
	used := 2
	more |= uint64(d.Tokens) << tokenShift
	if d.Waited {
		more |= 1 << waitShift
		words[used] = uint64(d.Wait)
		used++
	}
	if d.WasBounded {
		more |= 1 << patienceShift
		words[used] = uint64(d.Patience)
		used++
	}
	used += copy(words[used:], d.attributes[:d.count])
	words[0] = more | uint64(d.count)<<countShift
	even := words[:(used+1)&^1]
	at := rec.claim(d.At, uint64(len(even)/2+1))
	rec.writeMore(at, first, second, even, d.At)
	return at.index
}

// Ended records how a call ended that passed at an instant. That is beside the record of its passing, if it is
// known where that is; else record is 0.
func (rec *Recorder) Ended(r Resource, start, now clock.Instant, flags Flags, record uint32) {
	end := min(uint64(max(0, now-start)), maxDuration)<<durationShift | uint64(flags)<<endFlagShift
	if record != 0 {
		if n := r.Place.known.Load(); n.isOf(&rec.resources) {
			rec.end(record, n.index<<resourceShift, start, end)
		}
		return
	}
	if start >= rec.since { // else nobody knows of it
		now = max(now, start)
		rec.write(rec.claim(now, 1), recordEnded|rec.resources.indexOf(r.Place, r.Name)<<resourceShift, end, now)
	}
}

// Settled records what a call that passed at an instant is charged with.
func (rec *Recorder) Settled(r Resource, start, now clock.Instant, tokens int32) {
	if start < rec.since {
		return
	}
	now = max(now, start)
	first := recordSettled | rec.resources.indexOf(r.Place, r.Name)<<resourceShift
	more := [4]uint64{2: uint64(now - start)}
	rec.writeMore(rec.claim(now, 3), first, uint64(tokens)<<valueShift, more[:], now)
}

func (rec *Recorder) learnRule(by Rule) *entry {
	return rec.rules.learn(by.Place, string(by.Key.Kind)+"\x00"+by.Key.Name)
}

// splitRule returns the kind and the name that a number of the table of rules stands for.
func splitRule(text string) (kind, name string) {
	kind, name, found := strings.Cut(text, "\x00")
	if !found {
		return "", text
	}
	return kind, name
}

// valueOf returns a value as words have it: a hash, or its type and number.
func (rec *Recorder) valueOf(a rule.Attribute) uint64 {
	if text, ok := a.Text(); ok {
		if rec.values {
			return rec.texts.find(text).index << valueTypeBits // a text
		}
		return maphash.String(rec.seed, text) & valueMask
	}
	number, isNumber := a.Number()
	switch yes, _ := a.Boolean(); {
	case isNumber && rec.values:
		var digits [20]byte
		text := strconv.AppendInt(digits[:0], number, 10)
		digitsText := unsafe.String(&text[0], len(text)) //nolint:gosec // it is not kept
		return rec.integers.find(digitsText).index<<valueTypeBits | valueIsNumber
	case isNumber:
		return splitmix.Mix(uint64(number)^rec.numbers) & valueMask
	case rec.values && yes:
		return valueIsTrue
	case rec.values:
		return valueIsFalse
	case yes:
		return splitmix.Mix(splitmix.Mix(rec.numbers)+1) & valueMask // that of no number near 0
	}
	return splitmix.Mix(splitmix.Mix(rec.numbers)+2) & valueMask
}

// The types of values as they are; 0 is a text.
const (
	valueIsNumber = iota + 1
	valueIsFalse
	valueIsTrue
)
