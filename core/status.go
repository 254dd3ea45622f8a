package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/core/internal/sources"
	"github.com/penstock-go/penstock/rule"
)

// Status tells which rules are in force and how their sources are.
type Status struct {
	Revision  uint64        // of the rule set, counted by the engine; 0 before the first
	AppliedAt clock.Instant // when it was put in force
	Rules     int
	Sources   []SourceStatus // in the order in which they were first followed

	// Unmatched are the rules in force that no call has matched since they came into force: perhaps their
	// resource is misspelled, or nothing guards it. A rule matches a call of a resource that it guards,
	// whatever the call's origin. That a name was called is forgotten with the name, when it is not called
	// for a minute. It has the first hundred, by kind and name; MoreUnmatched counts the others.
	Unmatched     []rule.Key
	MoreUnmatched int

	MissingLists []MissingList // that rules in force name, by name

	// AwaitedLists are those of the MissingLists that keep the engine from being ready: those that rules
	// in force name, other than shadows. There are none once the engine was ready: once its status, or
	// [Engine.Ready], has said so while all sources were read and rules were in force. What goes missing
	// later, or is named by a new rule before it is pushed, would else take every instance of a service out
	// of service at the same moment.
	AwaitedLists []MissingList

	// AwaitsFleet says that the engine is not ready because [fleet.Config.AwaitBackend] is set and the
	// backend of the fleet has not answered yet, although rules in force are for the whole fleet.
	AwaitsFleet bool

	Signals  []SignalStatus // that rules in force read, by name
	Forced   []Forced       // by [Engine.ControlKind], then Rule is "", and by [Engine.Control]; by kind and name
	Switches []Forced       // what is switched off or on, see [Engine.Switch]
	Fleet    *FleetStatus   // nil if there is neither a backend for it nor a rule that needs one
}

// Status returns the present status.
func (e *Engine) Status() Status {
	defer e.journal.Flush(e.clock.Now(), false)
	e.noteMatched()
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	status := Status{Revision: e.rules.revision, AppliedAt: e.rules.appliedAt, Rules: e.rules.book.Len()}
	status.Unmatched, status.MoreUnmatched = e.rules.unmatched()
	status.Signals = e.signalStatus()
	status.Forced, status.Switches = e.rules.forcedList(e.clock), switchList(e.rules.switches, e.clock)
	status.MissingLists = e.missingLists(func(rule.Rule) bool { return true })
	status.AwaitedLists, status.AwaitsFleet = e.awaitedLists(), e.fleet.Awaited() != nil
	status.Fleet = e.fleetStatus(e.clock.Now())
	unmatched := e.unmatchedOfSources()
	for _, f := range e.sources.All() {
		status.Sources = append(status.Sources, e.sourceStatus(f, unmatched))
	}
	return status
}

// Status is the engine's side of [Sink].
func (f sourceSink) Status() SourceStatus {
	f.engine.noteMatched()
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	s := f.engine.sourceStatus(f.of, f.engine.unmatchedOfSources())
	s.MissingLists = f.engine.missingLists(isEnforced)
	s.Forced, s.Switches = f.engine.rules.forcedList(f.engine.clock), switchList(f.engine.rules.switches, f.engine.clock)
	return s
}

// sourceStatus returns how a source is. The caller holds rules.mu.
func (e *Engine) sourceStatus(f *sources.Source, unmatched unmatchedOfSources) SourceStatus {
	s := SourceStatus{
		Name: f.Name, Ready: f.Ready, Connected: f.Connected, Since: f.Since, Err: f.Err, Revision: f.Rules.Revision(),
		CopiedAt: f.CopiedAt, HeldBack: (*HeldBackError)(f.Rules.HeldBack()),
	}
	for _, d := range e.rules.book.Documents(f.Rules) {
		s.Documents = append(s.Documents, documentStatus(d))
	}
	unmatched.addTo(&s)
	return s
}

// Document is the engine's side of [Sink].
func (f sourceSink) Document(name string) (DocumentStatus, bool) {
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	d, ok := f.engine.rules.book.Document(f.of.Rules, name)
	return documentStatus(d), ok
}

func documentStatus(d ruleset.DocumentStatus) DocumentStatus {
	return DocumentStatus{
		Name: d.Name, Rules: d.Rules, Revision: d.Revision, Created: d.Created, Digest: d.Digest, AppliedAt: d.AppliedAt,
		Rejected: publicError(d.Rejected), RejectedRevision: d.RejectedRevision,
	}
}

// addTo adds the rules of a source to its status.
func (u unmatchedOfSources) addTo(s *SourceStatus) {
	if of := u[s.Name]; of != nil {
		s.Unmatched, s.MoreUnmatched = of.first, of.more
	}
}
