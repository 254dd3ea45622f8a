package optional

import "github.com/penstock-go/penstock/rule"

// What limiters say beside the decisions of all kinds.
const (
	// NeedsAttribute says that the limiter cannot decide without the attribute of the
	// call, see [LateReader]. It may only be returned by AcquireUnread.
	NeedsAttribute rule.Decision = rule.Stale + 1 + iota

	// NeedsSource says that the limiter cannot decide without knowing where the call comes
	// from, and has taken nothing: see [SourceReader].
	NeedsSource
)

// LateReader is a limiter that can decide on most calls without the attribute that its
// rule looks at. The engine then reads the attribute only if the limiter needs it.
type LateReader interface {
	rule.Limiter

	// AcquireUnread is Acquire for a call whose attribute was not read. NeedsAttribute
	// means that it cannot decide without, and has taken nothing: then the engine reads
	// the attribute, which the call may not have, and asks Acquire. RetryAfter is asked
	// without the attribute.
	AcquireUnread(rule.Call) (rule.Ticket, rule.Decision)
}

// SourceReader is a limiter that judges some calls by where they come from, such as those of which
// it has no state of their own. So who invents what such a limiter looks at shares its counters
// with himself, and not with everybody.
type SourceReader interface {
	rule.Limiter

	// AcquireFrom is Acquire for a call to which Acquire said NeedsSource, which it may only do
	// if [rule.Env.Sources] is set. The source is what identifies the client among others, see
	// [rule.KeyIPPrefix], else the name of the caller; nothing if the call has neither. It must not
	// answer NeedsSource.
	AcquireFrom(c rule.Call, source rule.Attribute) (rule.Ticket, rule.Decision)
}

// Prefetcher is a limiter that looks up the attribute of a call in memory that is too large for
// the near caches of a processor.
type Prefetcher interface {
	rule.Limiter

	// Prefetches says whether Prefetch is worth its time, which is so or not for as long as
	// the limiter lives.
	Prefetches() bool

	// Prefetch begins to load what Acquire will look at for an attribute that is set, and does
	// not wait for it. The engine calls it before it reads the clock, unless it would have to
	// read the attribute from a request first. Neither need be followed by the other.
	Prefetch(rule.Attribute)
}
