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
	// Memory is how many bytes of calls are kept, the oldest make room for the new: 16 a call, 16 more
	// if it has options, and 8 more for each attribute. Names take up to some MiB beside
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

// What more there is of a decision, in the word after the first pair: the tag, the tokens, the number of the
// origin, the priority, flags, what words follow.
const (
	tokenShift    = tagBits
	originShift   = tokenShift + 31
	priorityShift = originShift + recordedOriginBits // three bits
	flagShift     = priorityShift + 3                // those of the package recording that are known then
	waitShift     = flagShift + 3
	patienceShift = waitShift + 1
	countShift    = patienceShift + 1 // three bits: of attributes

	plainPriority = 2 // of a call without options
)

// The word of an attribute: its value, then the number of its key.
const (
	keyShift      = 64 - recordedKeyBits
	valueMask     = 1<<keyShift - 1
	valueTypeBits = 2 // of values as they are, the lowest
)

func newRecorder(of Recorder, secret [32]byte, c clock.Clock) *recorder {
	r := &recorder{values: of.Values, since: c.Now(), secret: secret, seed: maphash.MakeSeed()}
	r.numbers = maphash.Bytes(r.seed, secret[:])
	memory := of.Memory
	if memory <= 0 {
		memory = DefaultRecorderMemory
	}
	r.init(memory, c)
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

// atOnce records what was decided on a call that did not wait: it has passed, or was refused by a rule. It
// returns where that is recorded, for its end. In most cases that is one pair of words.
func (rec *recorder) atOnce(
	ctx context.Context, r *resource, c *chain, now clock.Instant, tokens int32, opts []Option, by *refusals,
) uint32 {
	if len(opts) > 0 || tokens != 1 || len(c.recorded) > 0 {
		v := verdict{by: by}
		if by != nil {
			v.outcome = recording.Refused
		}
		return rec.decided(ctx, r, c, now, tokens, opts, v)
	}
	n := r.recorded.Load()
	if !n.isOf(&rec.resources) {
		n = rec.resources.learn(&r.recorded, r.Name) // as in indexOf, whose call is 1 ns
	}
	first, second := n.index<<resourceShift, uint64(0)
	if by != nil {
		first |= uint64(recording.Refused)
		second = rec.ruleIndex(by) << valueShift
	}
	at := rec.claim(now, 1)
	rec.write(at, first, second, now)
	return at.index
}

func (rec *recorder) decided(
	ctx context.Context, r *resource, c *chain, now clock.Instant, tokens int32, opts []Option, v verdict,
) uint32 {
	first := uint64(v.outcome) | rec.resources.indexOf(&r.recorded, r.Name)<<resourceShift
	more, second := uint64(plainPriority)<<priorityShift, uint64(0)
	if !areAttributes(opts) {
		more = rec.options(opts)
	}
	if v.by != nil {
		second = rec.ruleIndex(v.by) << valueShift
	}
	var words [2*maxPairs - 2]uint64
	used := 2
	more |= uint64(tokens) << tokenShift
	if v.waited {
		more |= 1 << waitShift
		words[used] = uint64(max(0, now.Sub(v.since)))
		used++
	}
	if deadline, ok := deadlineOf(ctx, v.bounded); ok {
		more |= 1 << patienceShift
		words[used] = uint64(max(1, r.env.clock.Until(deadline)+time.Duration(words[2])))
		used++
	}
	count := rec.attributes(ctx, c, opts, words[used:])
	used += count
	words[0] = more | uint64(count)<<countShift
	even := words[:(used+1)&^1]
	at := rec.claim(now, uint64(len(even)/2+1))
	rec.writeMore(at, first, second, even, now)
	return at.index
}

// deadlineOf returns the deadline of a call that could wait.
func deadlineOf(ctx context.Context, bounded bool) (deadline time.Time, ok bool) {
	if !bounded || ctx == nil {
		return time.Time{}, false
	}
	return ctx.Deadline()
}

// options returns what options say that are no attributes.
func (rec *recorder) options(opts []Option) (more uint64) {
	var q request
	q.read(nil, opts) //nolint:staticcheck // the context is not looked at
	flags := recording.Flags(0)
	if q.Inbound() {
		flags |= recording.Inbound
	}
	if q.noWait {
		flags |= recording.NoWait
	}
	if q.LongLived() {
		flags |= recording.LongLived
	}
	more = uint64(q.Priority()+plainPriority)<<priorityShift | uint64(flags)<<flagShift
	if origin := originOf(opts); origin != "" {
		more |= rec.origins.find(origin).index << originShift
	}
	return more
}

func (rec *recorder) ruleIndex(by *refusals) uint64 {
	n := by.recorded.Load()
	if !n.isOf(&rec.rules) {
		n = rec.rules.learn(&by.recorded, string(by.key.Kind)+"\x00"+by.key.Name)
	}
	return n.index
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

// record records what was decided on a call that had to wait, or could have had to, and returns where.
func (a *admission) record(ctx context.Context, opts []Option, c *chain, by *refusals) uint32 {
	rec := a.resource.env.recorder.Load()
	if rec == nil {
		return 0
	}
	v := verdict{by: by, bounded: true}
	if by != nil {
		v.outcome = recording.Refused
	}
	if a.wait.node != nil {
		v.waited, v.since = true, a.wait.since
	}
	return rec.decided(ctx, a.resource, c, a.Now, a.Tokens, opts, v)
}

// recordGivenUp records that the context of a call has ended while it waited, if that is the error.
func (a *admission) recordGivenUp(ctx context.Context, opts []Option, err error) {
	rec, plan := a.resource.env.recorder.Load(), a.resource.plan.Load()
	if rec != nil && err != nil && a.wait.node != nil && ctx.Err() != nil && !errors.Is(err, ErrBlocked) {
		v := verdict{outcome: recording.GaveUp, waited: true, since: a.wait.since}
		rec.decided(ctx, a.resource, plan.chainFor(opts), a.Now, a.Tokens, opts, v)
	}
}

// remember returns the rest of a guard that notes where it is recorded that the call has passed, as its end
// is written beside it. 0 is nowhere: of many tokens or a wide ticket, and of the very first record, the end
// is a record of its own. Guards with a guardRecord have it there.
func remember(record, word, rest uint32) uint32 {
	if record == 0 || record > maxRemembered || rest > tokenMask || word&whereMask > carried {
		return rest
	}
	return remembers | record<<rememberedShift | rest
}

// recordedAt returns what remember has noted in a guard with a word.
func (g *Guard) recordedAt(word uint32) uint32 {
	if rest := g.state.rest; word&whereMask <= carried && rest&remembers != 0 {
		return rest &^ remembers >> rememberedShift
	}
	return 0
}

// recordEnd records how a call ended, if there is a recorder.
func (g *Guard) recordEnd(now clock.Instant, word uint32, longLived bool, record uint32) {
	rec := g.resource.env.recorder.Load()
	if rec == nil {
		return
	}
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
	rec.ended(g.resource, g.start, now, flags, record)
}

// recordCancel records that a call was not made after all, if there is a recorder.
func (g *Guard) recordCancel(now clock.Instant, record uint32) {
	if rec := g.resource.env.recorder.Load(); rec != nil {
		rec.ended(g.resource, g.start, now, recording.Cancelled, record)
	}
}

func (rec *recorder) ended(r *resource, start, now clock.Instant, flags recording.Flags, record uint32) {
	end := min(uint64(max(0, now-start)), maxDuration)<<durationShift | uint64(flags)<<endFlagShift
	if record != 0 {
		if n := r.recorded.Load(); n.isOf(&rec.resources) {
			rec.end(record, n.index<<resourceShift, start, end)
		}
		return
	}
	if start >= rec.since { // else nobody knows of it
		now = max(now, start)
		rec.write(rec.claim(now, 1), recordEnded|rec.resources.indexOf(&r.recorded, r.Name)<<resourceShift, end, now)
	}
}

// recordSettle records what a call is charged with, if there is a recorder.
func (g *Guard) recordSettle(now clock.Instant, tokens int32) {
	rec := g.resource.env.recorder.Load()
	if rec == nil || g.start < rec.since {
		return
	}
	now = max(now, g.start)
	first := recordSettled | rec.resources.indexOf(&g.resource.recorded, g.resource.Name)<<resourceShift
	more := [4]uint64{2: uint64(now - g.start)}
	rec.writeMore(rec.claim(now, 3), first, uint64(tokens)<<valueShift, more[:], now)
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
