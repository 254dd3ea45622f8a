package nethttp

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// answerSlots is how many answers and how many lists of policies are cached.
const answerSlots = 1024

// Answers sets the header fields that tell clients about limits, and writes the
// responses to refused requests. It caches about a thousand answers, because the
// errors of refusals are shared: writing a cached answer costs next to nothing. An
// answer depends on the caller only if rules name its origin. It is for adapters;
// make it with [NewAnswers]. It is safe for concurrent use.
type Answers struct {
	engine *core.Engine
	fields Fields
	spread Spread
	seed   maphash.Seed

	refused  answerSlotsOf[refusedCall, answer]
	policies answerSlotsOf[passedCall, []string]
}

// NewAnswers returns the answers for calls of the engine, with the given fields; spread says how Retry-After differs
// between clients.
func NewAnswers(engine *core.Engine, fields Fields, spread Spread) *Answers {
	return &Answers{engine: engine, fields: fields, spread: spread.withDefaults(), seed: maphash.MakeSeed()}
}

// refusedCall is the key of a cached answer to a refused call. All origins that no
// rule names are the same.
type refusedCall struct {
	block  *core.BlockError
	origin string
}

// passedCall is the key of a cached list of policies for a call that passed.
type passedCall struct{ resource, origin string }

// answer is the answer to a refused call. Many responses share its slices: they must
// not be changed, and their capacity equals their length.
type answer struct {
	status        int
	retryAfter    []string // the values of the field, of which each response has one; nil where it has none
	limit, policy []string // of the fields; nil where there is none
	contentType   []string
	body          []byte
	noPolicy      []byte // the body where the rule has no policy that the fields tell

	// limitsValues says that policy and limit are not those of all callers: they are made for each.
	limitsValues bool
}

// SetRefused sets the header fields of the response to a call by the origin that
// was refused with block: see [Fields.SetRefused]. Without the options of the call, the fields tell
// nothing of limits for each value of an attribute.
func (a *Answers) SetRefused(header http.Header, block *core.BlockError, origin string, opts ...core.Option) {
	a.setFields(header, a.refusal(block, origin), block, opts)
}

// SetRetryAfter sets Retry-After alone, of the response to a call that was refused with block, by
// this guard or by another one.
func (a *Answers) SetRetryAfter(header http.Header, block *core.BlockError) {
	setField(header, "Retry-After", a.spread.pick(a.spread.valuesOf(block)))
}

// setFields sets the fields of the answer to a refused call with these options. It says whether they
// tell a policy of the rule.
func (a *Answers) setFields(header http.Header, made *answer, block *core.BlockError, opts []core.Option) bool {
	setField(header, "Retry-After", a.spread.pick(made.retryAfter))
	policy, limit := made.policy, made.limit
	if len(opts) > 0 && (made.limitsValues || limit != nil && core.CallTokens(opts...) > 1) {
		policy, limit = a.fields.refusedFields(a.engine, block, opts)
	}
	setField(header, policyFieldName, policy)
	setField(header, limitFieldName, limit)
	return limit != nil
}

// WriteRefused answers a call by the origin that was refused with block: with the
// header fields, and the status and the body of [WriteProblem], which names the
// rule if the fields say so, see [Fields]. The options are those of the call, as in SetRefused.
func (a *Answers) WriteRefused(w http.ResponseWriter, block *core.BlockError, origin string, opts ...core.Option) {
	markRefused(w, block)
	answer := a.refusal(block, origin)
	header, body := w.Header(), answer.body
	if !a.setFields(header, answer, block, opts) {
		body = answer.noPolicy
	}
	setField(header, "Content-Type", answer.contentType)
	w.WriteHeader(answer.status)
	_, _ = w.Write(body) // fails only when the client has gone
}

func (a *Answers) refusal(block *core.BlockError, origin string) *answer {
	revision := a.engine.Revision() // before the rules are looked at
	key := refusedCall{block, a.engine.NamedOrigin(block.Resource, origin)}
	slot := a.refused.at(maphash.Comparable(a.seed, key))
	if made := slot.Load(); made != nil && made.key == key && made.revision == revision {
		return &made.value
	}
	made := &remembered[refusedCall, answer]{key: key, revision: revision}
	p := problemOfBlock(block, a.fields)
	made.value.contentType = []string{problemType}
	made.value.status, made.value.body = p.Status, p.encode()
	p.ViolatedPolicies = nil
	made.value.noPolicy = p.encode()
	made.value.retryAfter = a.spread.valuesOf(block)
	if !a.fields.Never && block.Reason == rule.RateLimited {
		made.value.policy, made.value.limit = a.fields.refusedFields(a.engine, block, []core.Option{core.Origin(origin)})
		made.value.limitsValues = a.engine.LimitsValues(block.Resource, core.Origin(origin))
	}
	if isWorthRemembering(block.Resource, key.origin) {
		made.key.origin = strings.Clone(key.origin)
		slot.Store(made)
	}
	return &made.value
}

// isWorthRemembering reports whether names, which clients may have chosen, are short
// enough to be cached. Names are copied before that, because they may be substrings of
// something larger, such as a header field.
func isWorthRemembering(resource, origin string) bool {
	return len(resource) <= rule.MaxNameLength && len(origin) <= rule.MaxNameLength
}

// SetPassed sets the header fields of the response to a call of the resource by
// the origin that passed: see [Fields.SetPassed]. Without the options of the call, the fields tell
// nothing of limits for each value of an attribute.
func (a *Answers) SetPassed(header http.Header, resource, origin string, opts ...core.Option) {
	if !a.fields.always() {
		return
	}
	revision := a.engine.Revision() // before the rules are looked at
	if len(opts) == 0 {
		opts = []core.Option{core.Origin(origin)}
	}
	a.setPassed(header, resource, origin, revision, a.engine.Quotas(resource, opts...))
}

// SetDecided is SetPassed for a call that [core.Engine.Decide] has decided on, whose limits are known.
func (a *Answers) SetDecided(header http.Header, resource, origin string, d *core.Decision) {
	if a.fields.always() {
		a.setPassed(header, resource, origin, d.Revision, d.Limits)
	}
}

// setPassed sets the fields, given the limits and the revision of the rules before these were read.
func (a *Answers) setPassed(header http.Header, resource, origin string, revision uint64, quotas []core.RuleSnapshot) {
	if len(quotas) == 0 {
		return
	}
	if slices.ContainsFunc(quotas, isOfValue) {
		setField(header, policyFieldName, a.fields.policyField(quotas))
		setField(header, limitFieldName, a.fields.nearestLimit(quotas))
		return
	}
	key := passedCall{resource, a.engine.NamedOrigin(resource, origin)}
	slot := a.policies.at(maphash.Comparable(a.seed, key))
	made := slot.Load()
	if made == nil || made.key != key || made.revision != revision {
		made = &remembered[passedCall, []string]{key, revision, a.fields.policyField(quotas)}
		if isWorthRemembering(resource, key.origin) {
			made.key = passedCall{strings.Clone(resource), strings.Clone(key.origin)}
			slot.Store(made)
		}
	}
	setField(header, policyFieldName, made.value)
	setField(header, limitFieldName, a.fields.nearestLimit(quotas))
}

// remembered is a cached value for a key at a revision of the rules.
type remembered[K comparable, V any] struct {
	key      K
	revision uint64
	value    V
}

// answerSlotsOf is a direct-mapped cache: each slot keeps the last value. The slots
// are allocated on first use.
type answerSlotsOf[K comparable, V any] struct {
	slots atomic.Pointer[[answerSlots]atomic.Pointer[remembered[K, V]]]
}

func (s *answerSlotsOf[K, V]) at(hash uint64) *atomic.Pointer[remembered[K, V]] {
	slots := s.slots.Load()
	if slots == nil {
		slots = new([answerSlots]atomic.Pointer[remembered[K, V]])
		s.slots.Store(slots) // may replace slots that another goroutine has just allocated
	}
	return &slots[hash%answerSlots]
}
