package core

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
)

// DefaultRecorderMemory is how many bytes of calls a recorder keeps by default.
const DefaultRecorderMemory = 16 << 20

// Recorder says how calls are recorded, see [Config.Recorder].
type Recorder struct {
	// Memory is how many bytes of calls are kept, the oldest make room for the new: 24 a call that
	// passes and 16 one that is refused, and 8 more for each attribute. Names take up to some MiB beside
	// it. Defaults to [DefaultRecorderMemory].
	Memory int

	// Values has values of attributes recorded as they are: names of users, addresses, tokens. Without it
	// they are hashed with a secret that never leaves the engine. Replays by rules that name values, or
	// look them up in lists, need them.
	Values bool
}

// recorder records calls while it is on. It keeps each call as words: what was decided on it, and how it
// ended. See docs/recording.md for what a recording then has.
type recorder struct {
	recordedBlocks

	values  bool
	since   clock.Instant // when it was switched on
	secret  [32]byte      // of the hashes of values
	seed    maphash.Seed
	numbers uint64 // a part of the secret, for values that are numbers

	resources, origins, rules, keys recordedNames
	texts, integers                 recordedNames // values as they are
}

// The bounds of the tables of names. Their numbers have so many bits in words.
const (
	recordedNameBits   = 16
	recordedOriginBits = 12
	recordedKeyBits    = 8
	maxRecordedValues  = 1 << 18
	maxRecordedKeys    = 7 // of a call
)

// The words of records. The first one has, from the lowest bit: the type; the number of the resource; the
// instant, since that of the block; flags. The types of decisions are the outcomes of the package recording.
const (
	recordEnded   = 3 // the duration in the next word
	recordSettled = 4 // the time since it passed in the next word, then the tokens
	recordTypes   = 7 // the mask

	resourceShift = 3
	instantShift  = resourceShift + recordedNameBits
	flagShift     = instantShift + instantBits
)

// The flags of what was decided, and of an end: those of the package recording, and others.
const (
	flagPriority = 6 // three bits
	flagMore     = 1 << 9

	ownFlags = 1<<flagPriority - 1 // those of the package recording
)

// The second word of what was decided: tokens, the number of the origin and of the rule, what else follows.
const (
	originShift   = 31
	ruleShift     = originShift + recordedOriginBits
	waitShift     = ruleShift + recordedNameBits
	patienceShift = waitShift + 1
	countShift    = patienceShift + 1 // three bits: of attributes
)

// The word of an attribute: its value, then the number of its key.
const (
	keyShift      = 64 - recordedKeyBits
	valueMask     = 1<<keyShift - 1
	valueTypeBits = 2 // of values as they are, the lowest
)

func newRecorder(of Recorder, secret [32]byte, now clock.Instant) *recorder {
	r := &recorder{values: of.Values, since: now, secret: secret, seed: maphash.MakeSeed()}
	r.numbers = maphash.Bytes(r.seed, secret[:])
	memory := of.Memory
	if memory <= 0 {
		memory = DefaultRecorderMemory
	}
	r.init(memory)
	r.resources.init(1 << recordedNameBits)
	r.rules.init(1 << recordedNameBits)
	r.origins.init(1 << recordedOriginBits)
	r.keys.init(1 << recordedKeyBits)
	r.texts.init(maxRecordedValues)
	r.integers.init(maxRecordedValues)
	return r
}

// verdict is what became of a call, as far as callers differ in it.
type verdict struct {
	outcome recording.Outcome
	by      *refusals
	waited  bool
	since   clock.Instant // when it began to wait, if it has
	bounded bool          // it could wait: the deadline of its context matters
}

// recordedKey is an attribute that rules of a chain look at.
type recordedKey struct {
	name   string
	number atomic.Pointer[recordedName]
}

// keysToRecord returns the attributes that rules of the chain look at, the first few.
func (c *chain) keysToRecord() (keys []*recordedKey) {
	add := func(name string) {
		for _, k := range keys {
			if k.name == name {
				return
			}
		}
		if len(keys) < maxRecordedKeys {
			keys = append(keys, &recordedKey{name: name})
		}
	}
	for i := range len(c.steps) + len(c.shadows) {
		s := c.slotStep(i)
		for _, key := range s.keys() {
			add(key)
		}
		if s.keyed != nil && s.keyed.sources != nil {
			add(rule.KeyIPPrefix)
		}
	}
	return keys
}

// atOnce records what was decided on a call that did not wait: it has passed, or was refused by a rule. In
// most cases that is one word or two.
func (rec *recorder) atOnce(
	ctx context.Context, r *resource, c *chain, now clock.Instant, tokens int32, opts []Option, by *refusals,
) {
	if len(opts) > 0 || tokens != 1 || len(c.recorded) > 0 {
		v := verdict{by: by}
		if by != nil {
			v.outcome = recording.Refused
		}
		rec.decided(ctx, r, c, now, tokens, opts, v)
		return
	}
	first := rec.resources.indexOf(&r.recorded, r.Name)<<resourceShift | plainFlags<<flagShift
	if by == nil {
		b := rec.open(now)
		b.words[b.used] = first | uint64(now-b.base)<<instantShift
		b.used++
		b.lock.Store(0)
		return
	}
	more := 1 | rec.ruleIndex(by)<<ruleShift
	b := rec.open(now)
	b.words[b.used] = first | uint64(recording.Refused) | uint64(now-b.base)<<instantShift | flagMore<<flagShift
	b.words[b.used+1] = more
	b.used += 2
	b.lock.Store(0)
}

// plainFlags are the flags of a call without options.
const plainFlags = 2 << flagPriority

func (rec *recorder) decided(
	ctx context.Context, r *resource, c *chain, now clock.Instant, tokens int32, opts []Option, v verdict,
) {
	flags, more := uint64(plainFlags), uint64(0)
	if !areAttributes(opts) {
		flags, more = rec.options(opts, flags)
	}
	first := uint64(v.outcome) | rec.resources.indexOf(&r.recorded, r.Name)<<resourceShift
	var words [maxWords]uint64
	used := 2
	more |= uint64(tokens)
	if v.by != nil {
		more |= rec.ruleIndex(v.by) << ruleShift
	}
	wait := time.Duration(0)
	if v.waited {
		wait = max(0, now.Sub(v.since))
		more |= 1 << waitShift
		words[used] = uint64(wait)
		used++
	}
	if deadline, ok := deadlineOf(ctx, v.bounded); ok {
		more |= 1 << patienceShift
		words[used] = uint64(max(1, r.env.clock.Until(deadline)+wait))
		used++
	}
	count := rec.attributes(ctx, c, opts, words[used:])
	used += count
	words[1] = more | uint64(count)<<countShift
	b := rec.open(now)
	words[0] = first | uint64(now-b.base)<<instantShift | (flags|flagMore)<<flagShift
	copy(b.words[b.used:], words[:used])
	b.used += int32(used)
	b.lock.Store(0)
}

// deadlineOf returns the deadline of a call that could wait.
func deadlineOf(ctx context.Context, bounded bool) (deadline time.Time, ok bool) {
	if !bounded || ctx == nil {
		return time.Time{}, false
	}
	return ctx.Deadline()
}

// options adds what options say that are no attributes.
func (rec *recorder) options(opts []Option, before uint64) (flags, more uint64) {
	var q request
	q.read(nil, opts) //nolint:staticcheck // the context is not looked at
	flags = before&^(7<<flagPriority) | uint64(q.Priority()+2)<<flagPriority
	if q.Inbound() {
		flags |= uint64(recording.Inbound)
	}
	if q.noWait {
		flags |= uint64(recording.NoWait)
	}
	if q.LongLived() {
		flags |= uint64(recording.LongLived)
	}
	if origin := originOf(opts); origin != "" {
		more = uint64(rec.origins.find(origin).index) << originShift
	}
	return flags, more
}

func (rec *recorder) ruleIndex(by *refusals) uint64 {
	if n := by.recorded.Load(); n != nil && n.of == &rec.rules {
		return uint64(n.index)
	}
	n := rec.rules.find(string(by.key.Kind) + "\x00" + by.key.Name)
	by.recorded.Store(n)
	return uint64(n.index)
}

// attributes writes the words of the attributes that rules of the chain look at.
func (rec *recorder) attributes(ctx context.Context, c *chain, opts []Option, words []uint64) (count int) {
	if len(c.recorded) == 0 {
		return 0
	}
	q := request{ctx: ctx}
	for _, key := range c.recorded {
		if a := q.attribute(opts, key.name); a.IsSet() {
			words[count] = rec.valueOf(a) | rec.keys.indexOf(&key.number, key.name)<<keyShift
			count++
		}
	}
	return count
}

// valueOf returns a value as words have it: a hash, or its type and number.
func (rec *recorder) valueOf(a rule.Attribute) uint64 {
	if text, ok := a.Text(); ok {
		if rec.values {
			return uint64(rec.texts.find(text).index) << valueTypeBits // a text
		}
		return maphash.String(rec.seed, text) & valueMask
	}
	number, isNumber := a.Number()
	switch yes, _ := a.Boolean(); {
	case isNumber && rec.values:
		var digits [20]byte
		text := strconv.AppendInt(digits[:0], number, 10)
		digitsText := unsafe.String(&text[0], len(text)) //nolint:gosec // it is not kept
		return uint64(rec.integers.find(digitsText).index)<<valueTypeBits | valueIsNumber
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

// record records what was decided on a call that had to wait, or could have had to.
func (a *admission) record(ctx context.Context, opts []Option, c *chain, by *refusals) {
	rec := a.resource.env.recorder.Load()
	if rec == nil {
		return
	}
	v := verdict{by: by, bounded: true}
	if by != nil {
		v.outcome = recording.Refused
	}
	if a.wait.node != nil {
		v.waited, v.since = true, a.wait.since
	}
	rec.decided(ctx, a.resource, c, a.Now, a.Tokens, opts, v)
}

// recordGivenUp records that the context of a call has ended while it waited, if that is the error.
func (a *admission) recordGivenUp(ctx context.Context, opts []Option, err error) {
	rec, plan := a.resource.env.recorder.Load(), a.resource.plan.Load()
	if rec != nil && err != nil && a.wait.node != nil && ctx.Err() != nil && !errors.Is(err, ErrBlocked) {
		v := verdict{outcome: recording.GaveUp, waited: true, since: a.wait.since}
		rec.decided(ctx, a.resource, plan.chainFor(opts), a.Now, a.Tokens, opts, v)
	}
}

// recordEnd records how a call ended, if there is a recorder.
func (g *Guard) recordEnd(now clock.Instant, word uint32, longLived bool) {
	if rec := g.resource.env.recorder.Load(); rec != nil {
		flags := recording.Flags(0)
		if longLived {
			flags = recording.LongLived
		}
		switch word & stateMask {
		case failed:
			flags |= recording.Failed
		case ignored:
			flags |= recording.Ignored
		}
		rec.ended(g.resource, g.start, now, flags)
	}
}

// recordCancel records that a call was not made after all, if there is a recorder.
func (g *Guard) recordCancel(now clock.Instant) {
	if rec := g.resource.env.recorder.Load(); rec != nil {
		rec.ended(g.resource, g.start, now, recording.Cancelled)
	}
}

func (rec *recorder) ended(r *resource, start, now clock.Instant, flags recording.Flags) {
	if start < rec.since {
		return // nobody knows of it
	}
	now = max(now, start)
	first := recordEnded | rec.resources.indexOf(&r.recorded, r.Name)<<resourceShift | uint64(flags)<<flagShift
	b := rec.open(now)
	b.words[b.used] = first | uint64(now-b.base)<<instantShift
	b.words[b.used+1] = uint64(now - start)
	b.used += 2
	b.lock.Store(0)
}

// recordSettle records what a call is charged with, if there is a recorder.
func (g *Guard) recordSettle(now clock.Instant, tokens int32) {
	rec := g.resource.env.recorder.Load()
	if rec == nil || g.start < rec.since {
		return
	}
	now = max(now, g.start)
	first := recordSettled | rec.resources.indexOf(&g.resource.recorded, g.resource.Name)<<resourceShift
	b := rec.open(now)
	b.words[b.used] = first | uint64(now-b.base)<<instantShift
	b.words[b.used+1], b.words[b.used+2] = uint64(now-g.start), uint64(tokens)
	b.used += 3
	b.lock.Store(0)
}

// recorders is who wants calls to be recorded.
type recorders struct {
	config *Recorder // nil unless calls are always recorded

	mu    sync.Mutex
	users int // of the recorder that is on, beside the configuration
}

// splitRule returns the kind and the name that a number of the table of rules stands for.
func splitRule(text string) (kind, name string) {
	kind, name, found := strings.Cut(text, "\x00")
	if !found {
		return "", text
	}
	return kind, name
}
