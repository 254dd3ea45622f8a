package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// defaultMaxResources is how many resource names an engine keeps statistics of
// by default.
const defaultMaxResources = 10_000

// defaultRemovalWindow is the time over which [Config.MaxRemoval] counts by
// default.
const defaultRemovalWindow = time.Minute

// defaultSignalInterval is how often signals are sampled by default.
const defaultSignalInterval = 250 * time.Millisecond

// defaultMaxEvents is how many events an engine keeps by default.
const defaultMaxEvents = 1024

// Config configures an engine. The zero value is a good one.
type Config struct {
	// Clock is the time that the engine runs on. Defaults to [clock.System].
	Clock clock.Clock

	// Logger receives what an operator should know: rule sets that were
	// swapped, documents that were rejected, sources that were lost and, at
	// most once a second per resource, refusals. Defaults to [slog.Default].
	Logger *slog.Logger

	// Observer receives events. Defaults to none.
	Observer Observer

	// Kinds are kinds of rules beside those that come with Penstock; see the package
	// rule. Documents of sources may have rules of them, and so may sets from code.
	Kinds []rule.Definition

	// Lists are the lists that rules refer to by name. Engines may share them. Defaults
	// to lists of the engine's own, see [Engine.Lists].
	Lists *list.Registry

	// Signals tells what the machine and the process are busy with, for rules that read
	// signals: see the package signal. Without it no signal can be read; rules that need
	// one then let calls pass, which the log says. Defaults to none.
	Signals SignalSource

	// SignalInterval is how often the signals are sampled that rules in force read.
	// Defaults to 250 ms. All readings of one sample have four intervals
	// together, at least one second, in which to end: the contexts of those that take
	// longer end. A signal that has not been read for eight intervals, at least two
	// seconds, is not known, as if it could not be read. If SignalInterval is negative, only
	// [Engine.SampleSignals] samples, as simulations do, and readings do not get old.
	SignalInterval time.Duration

	// Fleet is what the instances of the service share, such as a Redis server, for rules
	// whose limit is that of all instances together: their scope is "fleet". Without a
	// [fleet.Config.Backend] such a rule limits this instance, which the log says as an
	// error. [New] panics if the instance has a name that logs cannot show. The engine does
	// not close the backend. Defaults to none.
	Fleet fleet.Config

	// Exempt are names of resources, or patterns of names, that no rule with a pattern is for, but
	// for rules of kinds that say who may call, whose Reason is [rule.Denied]: so a rule for all
	// resources does not shed the health checks of an instance that is busy, which would then be
	// stopped. Rules that name such a resource are for it. Clients must not be able to choose the
	// names. Defaults to [DefaultExempt]; an empty list, which is not nil, exempts none.
	Exempt []string

	// IsFailure says whether an error makes a call a failed one, for [Guard.Fail],
	// [Engine.Do] and [Call]. It must be safe for concurrent use. Defaults to any error
	// but the caller's own cancellation, [context.Canceled], and the refusal of a call
	// further down, [IsRefusal]. Adapters judge their calls by an option of their own.
	IsFailure func(error) bool

	// Seed makes repeatable what limiters choose at random, such as where they keep the
	// state of a value: simulations set it. Whoever knows it can choose values that
	// collide. Defaults to 0: every limiter chooses at random.
	Seed uint64

	// MaxRemoval is the largest share of a source's rules, from 0 to 1, that may be
	// taken out within RemovalWindow: 0.5 lets half of them go, at once or one after the
	// other. A change that takes out more, such as a prefix or a directory that was
	// emptied by mistake, is held back as a whole, and with it all later ones that
	// would, until it is confirmed: see [Engine.Confirm]. Rules that are given again
	// do not count. Defaults to 0, which sets no bound.
	//
	// The same holds for the entries of each list that comes from a source: a file that
	// was cut short, or that is gone, leaves the list in force.
	MaxRemoval float64

	// RemovalWindow is the time over which MaxRemoval counts the rules that a source
	// has taken out. Defaults to a minute; negative counts each change
	// by itself. A change that is held back stays so, however long that takes.
	RemovalWindow time.Duration

	// MaxEvents is how many of the latest events [Engine.Events] has at the most: about 300 bytes each.
	// Defaults to 1024; if it is negative, events are not kept.
	MaxEvents int

	// Recorder has every call recorded, so that [Engine.Recorded] has those of the last minutes. That
	// costs a call some nanoseconds, and the memory that it says. Defaults to nil: calls are recorded only
	// while [Engine.Record] runs, and cost nothing else.
	Recorder *Recorder

	// MaxResources bounds the resource names that have statistics of their own,
	// beside those that rules name, which always have. Calls of further names
	// share one node for statistics. Defaults to 10,000.
	//
	// A resource costs about 900 bytes once it is called, and 2.7 KiB when it is called
	// for a minute, 4 KiB if that is 100,000 times a second with events of every
	// kind; a rule on it about 1.6 KiB. One that no rule names is forgotten when
	// it was not called for a minute and no rule that matches it counts anything.
	// Under each rule with a pattern the names beyond the bound share one limit.
	MaxResources int
}

// Observer receives events in the goroutine in which they happen, so its
// functions must be quick and safe for concurrent use. No lock is held meanwhile: they
// may call the engine, except for [Engine.Close] in Swapped and Rejected, which would
// wait for the source that reports to them. Those that are nil are not called.
type Observer struct {
	// Refused is called for every call that is refused, with the context of the call.
	Refused func(ctx context.Context, err *BlockError)

	// Waited is called for every call that waited, when it goes on or gives up, before
	// [Engine.Entry] returns.
	Waited func(ctx context.Context, wait Wait)

	// Passed is called for every call that passes, before [Engine.Entry] returns. If it panics, the call
	// is not made. Without it calls do not even look whether there is one.
	Passed func(ctx context.Context, pass Pass)

	// Ended is called for every call that has passed when it has ended, in the goroutine that calls
	// [Guard.Exit] or [Guard.Cancel]: once for each. Without it calls do not even look whether there is one.
	Ended func(end End)

	// StateChanged is called when a limiter changes its state, as when a circuit
	// breaker opens: once for each change, in their order.
	StateChanged func(change StateChange)

	// Forced is called after an operator has forced a state, has switched rules off or on, or has released
	// what was, and when that has ended by itself: once for each, see [Engine.Control] and [Engine.Switch].
	Forced func(change ForcedChange)

	// Swapped is called after another set of rules was put in force.
	Swapped func(swap Swap)

	// Rejected is called when a document, a source as a whole, or what an owner has
	// loaded could not be applied, or not all of it; what was in force of it stays.
	Rejected func(rejection Rejection)
}

// Wait is how long a call waited because rules demanded it.
type Wait struct {
	// Resource is the name that the call was made of.
	Resource string

	// Duration is the time from its arrival in the first queue to the end of its last wait.
	Duration time.Duration

	// Err is what Entry returns: nil if the call has passed, a [*BlockError] if it was
	// refused after all, else the error of its context, or [ErrClosed].
	Err error
}

// Swap is a change of the rules in force.
type Swap struct {
	Revision                uint64 // of the rule set, counted by the engine
	At                      clock.Instant
	Rules                   int // now in force
	Added, Changed, Removed int
	Took                    time.Duration // to compile and to put in force
}

// Rejection tells of a document that was not applied, or not all of it. It also tells of
// rules from code that are not in force because another owner has their names, see
// [Engine.LoadAs]: Source is "code" then, and Document the owner.
type Rejection struct {
	Source   string
	Document string // "" for a change that was held back as a whole, see Config.MaxRemoval, or a source that panicked
	Revision int64
	Err      error // [rules.Problems] if the document was read, [*HeldBackError], or says that the source has panicked
}

// StateChange says that a limiter has changed its state, as when a circuit breaker
// opens.
type StateChange struct {
	At clock.Instant

	// Resource is the resource that the limiter guards, or the pattern of a rule that
	// several resources share.
	Resource string

	Kind     rule.Kind
	Rule     string
	From, To string // of the states that the kind has
	Because  string // in plain words, for kinds that say so; else ""
}

// SignalSource reads signals, such as how much of the processor is in use. See the
// package signal for those of the system.
type SignalSource interface {
	// Read returns what a signal shows now, or of late, or why that is not known. It is
	// called by one goroutine at a time, once for each sample of a signal that rules in
	// force read. It should return soon after ctx has ended: then its answer has come too
	// late, or the engine is closed. While it does not, no signal can be read. Signals that
	// have not been read for long are not known, see [Config.SignalInterval].
	Read(ctx context.Context, signal rule.Signal) (float64, error)
}

// Pass is a call that passes.
type Pass struct {
	Resource string // the name that the call was made of
	Tokens   int
	At       clock.Instant // when it passes
}

// End is the end of a call that has passed.
type End struct {
	// Resource is the name that the call was made of; [rule.OtherResources] for one beyond
	// [Config.MaxResources] that no rule with a pattern matches.
	Resource string

	At       clock.Instant // when it ended
	Duration time.Duration // since it passed

	Failed    bool // [Guard.MarkFailed]
	Ignored   bool // [Guard.MarkIgnored]
	LongLived bool // [LongLived]
	Cancelled bool // [Guard.Cancel]: the call was not made after all
}

// Recorder says how calls are recorded, see [Config.Recorder].
type Recorder struct {
	// Memory is how many bytes of calls are kept, the oldest make room for the new: 16 a call, 16 more
	// if it has options, and 8 more for each attribute. Names take up to some MiB beside
	// it. Defaults to 16 MiB.
	Memory int

	// Values has values of attributes recorded as they are: names of users, addresses, tokens. Without it
	// they are hashed with a secret that never leaves the engine. Replays by rules that name values, or
	// look them up in lists, need them.
	Values bool
}
