package inspect

import (
	"encoding/hex"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// Status tells which rules are in force in an engine and how their sources are.
type Status struct {
	Time      time.Time `json:"time"`               // of the engine, at which this was so
	Revision  uint64    `json:"revision"`           // of the rule set, counted by the engine; 0 before the first
	AppliedAt time.Time `json:"appliedAt,omitzero"` // when it was put in force
	Rules     int       `json:"rules"`
	Sources   []Source  `json:"sources"` // in the order in which they were first followed

	// Unmatched counts the rules that no call has matched since they came into force;
	// UnmatchedRules names the first hundred.
	Unmatched      int      `json:"unmatched,omitempty"`
	UnmatchedRules []string `json:"unmatchedRules,omitempty"`

	// Lists are those that rules refer to by name, those of one name in the order in which
	// they come into force.
	Lists []List `json:"lists,omitempty"`

	// MissingLists are the lists that rules in force name and that are not there.
	MissingLists []missingList `json:"missingLists,omitempty"`

	// ForcedKinds are the kinds of rules whose state an operator has forced.
	ForcedKinds []forcedKind `json:"forcedKinds,omitempty"`

	// Forced are the states that an operator has forced, on kinds and on rules, and Switches what is
	// switched off or on.
	Forced   []Forced `json:"forced,omitempty"`
	Switches []Forced `json:"switches,omitempty"`

	// Load is how loaded the resources are that guards were asked about, see
	// [core.Engine.PresentLoad]; nil if none was.
	Load *Load `json:"load,omitempty"`

	// Signals are those of the system that rules in force read, by name.
	Signals []Signal `json:"signals,omitempty"`

	// Fleet is how the engine shares limits with the other instances of its service; nil if
	// it has no backend for that and no rule that needs one.
	Fleet *Fleet `json:"fleet,omitempty"`

	// Limiters are the states of circuit breakers, of limits on concurrency, of limits for
	// each value of an attribute and the like, at most 1,000: breakers that are not
	// closed come first. It is as in [Limiters], with the following two.
	Limiters     []Limiter `json:"limiters,omitempty"`
	MoreLimiters int       `json:"moreLimiters,omitempty"`
	MoreValues   int       `json:"moreValues,omitempty"`
}

// forcedKind is a kind of rules of which an operator has forced the state of all rules.
type forcedKind struct {
	Kind  rule.Kind `json:"kind"`
	State string    `json:"state"`
}

// Load is how loaded a service is.
type Load struct {
	Level       string  `json:"level"`       // from "none" to "shedding"
	Utilization float64 `json:"utilization"` // up to 1 the share of the places that are taken
}

// Signal tells what a signal of the system shows, such as how much of the processor is in
// use.
type Signal struct {
	Signal rule.Signal `json:"signal"`
	Value  *float64    `json:"value,omitempty"` // left out while it is not known
	At     time.Time   `json:"at,omitzero"`     // when it was last sampled; left out if it never was
	Error  string      `json:"error,omitempty"` // why it is not known
	Rules  []string    `json:"rules"`           // that read it: at most ten, by kind and name
}

// List tells of a list as one source has it, without its entries.
type List struct {
	Name     string `json:"name"`
	Source   string `json:"source,omitempty"` // that it comes from, "" for one from code
	Document string `json:"document,omitempty"`

	// InForce says that rules go by it. It is false if there is no good version of it, and
	// if another source has a list of that name that comes first.
	InForce bool `json:"inForce"`

	Entries int       `json:"entries"`           // of the last good version, as are the following
	WithEnd int       `json:"withEnd,omitempty"` // entries among them that have an end, also those that have ended
	Bytes   int64     `json:"bytes"`             // of memory, about
	Digest  string    `json:"digest,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when it was put in force; left out for one from code

	// CopiedAt is left out unless that version was read from a copy of what the source had
	// then, as the source cannot be read.
	CopiedAt time.Time `json:"copiedAt,omitzero"`

	// HeldBack says why what the source has now is not put in force, "" if it is: too many
	// entries would go at once.
	HeldBack string `json:"heldBack,omitempty"`

	// Error says why the present version is not the last good one, and FailedAt since when
	// that is so.
	Error    string    `json:"error,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"`
}

// Source tells how a source is.
type Source struct {
	Name      string    `json:"name"`
	Ready     bool      `json:"ready"`           // all of its documents were read once, from itself or from a copy
	Connected bool      `json:"connected"`       // it could be read when last tried
	Since     time.Time `json:"since,omitzero"`  // when Connected last changed
	Error     string    `json:"error,omitempty"` // why it is not connected
	Revision  int64     `json:"revision"`        // of the source as a whole, 0 where it has none

	// CopiedAt is left out unless what is in force is a copy of what the source
	// held then, KnownUntil if the source was never read: it is the time until which
	// it is known what the source holds, that of the status while it is connected.
	CopiedAt   time.Time `json:"copiedAt,omitzero"`
	KnownUntil time.Time `json:"knownUntil,omitzero"`

	// HeldBack says why nothing of what the source holds now is put in force, ""
	// if it is: too many rules would go at once.
	HeldBack string `json:"heldBack,omitempty"`

	Documents []Document `json:"documents"`
}

// Document tells what of a document is in force.
type Document struct {
	Name      string    `json:"name"`
	Rules     int       `json:"rules"`
	Revision  int64     `json:"revision"`
	Digest    string    `json:"digest,omitempty"`   // the SHA-256 of the version in force, in hexadecimal
	AppliedAt time.Time `json:"appliedAt,omitzero"` // left out, like the digest, when none of it ever was in force

	// Rejected says why the version that the source holds now, of the revision
	// RejectedRevision, is not in force; "" when it is.
	Rejected         string `json:"rejected,omitempty"`
	RejectedRevision int64  `json:"rejectedRevision,omitempty"`
}

// presentStatus returns the status of the engine. It asks no other machine, see statusWithShares.
func presentStatus(engine *core.Engine) Status {
	return statusOf(engine, limitersOf(engine, RuleQuery{}, false))
}

// statusOf returns the status of the engine, with these limiters.
func statusOf(engine *core.Engine, limiters Limiters) Status {
	of, c := engine.Status(), engine.Clock()
	now := c.Now()
	status := Status{
		Time: timeOf(c, now), Revision: of.Revision, AppliedAt: timeOf(c, of.AppliedAt),
		Rules: of.Rules, Sources: make([]Source, len(of.Sources)), Unmatched: len(of.Unmatched) + of.MoreUnmatched,
	}
	for _, key := range of.Unmatched {
		status.UnmatchedRules = append(status.UnmatchedRules, key.String())
	}
	for i, s := range of.Sources {
		status.Sources[i] = sourceOf(s, c, now)
	}
	for _, l := range engine.Lists().Status() {
		status.Lists = append(status.Lists, listOf(&l, c))
	}
	for _, l := range of.MissingLists {
		status.MissingLists = append(status.MissingLists, missingList(l))
	}
	for _, forced := range of.Forced {
		if forced.Rule == "" {
			status.ForcedKinds = append(status.ForcedKinds, forcedKind{forced.Kind, forced.State})
		}
	}
	if load, ok := engine.PresentLoad(); ok {
		status.Load = &Load{load.Level.String(), load.Utilization}
	}
	status.Forced, status.Switches = forcedOf(of.Forced, c), forcedOf(of.Switches, c)
	for _, s := range of.Signals {
		status.Signals = append(status.Signals, signalOf(&s, c))
	}
	status.Fleet = fleetOf(of.Fleet, c)
	status.Limiters, status.MoreLimiters, status.MoreValues = limiters.Limiters, limiters.MoreLimiters, limiters.MoreValues
	return status
}

func signalOf(of *core.SignalStatus, c clock.Clock) Signal {
	s := Signal{Signal: of.Signal, At: timeOf(c, of.At), Error: textOf(of.Err), Rules: of.Rules}
	if of.Err == nil {
		s.Value = &of.Value
	}
	return s
}

func listOf(of *list.Status, c clock.Clock) List {
	l := List{
		Name: of.Name, Source: of.Source, Document: of.Document, InForce: of.InForce,
		Entries: of.Entries, WithEnd: of.WithEnd, Bytes: of.Size, Since: timeOf(c, of.Since), Error: textOf(of.Err), FailedAt: timeOf(c, of.FailedAt),
	}
	if of.CopiedAt != 0 {
		l.CopiedAt = of.CopiedAt.Time() // as it was written down
	}
	if of.HeldBack != nil {
		l.HeldBack = of.HeldBack.Error()
	}
	if of.Digest != [32]byte{} {
		l.Digest = hex.EncodeToString(of.Digest[:])
	}
	return l
}

func sourceOf(of core.SourceStatus, c clock.Clock, now clock.Instant) Source {
	s := Source{
		Name: of.Name, Ready: of.Ready, Connected: of.Connected, Since: timeOf(c, of.Since),
		Error: textOf(of.Err), Revision: of.Revision,
		KnownUntil: timeOf(c, of.KnownUntil(now)),
		Documents:  make([]Document, len(of.Documents)),
	}
	if of.CopiedAt != 0 {
		s.CopiedAt = of.CopiedAt.Time() // as it was written down
		if !of.Connected {
			s.KnownUntil = s.CopiedAt
		}
	}
	if of.HeldBack != nil {
		s.HeldBack = of.HeldBack.Error()
	}
	for i, d := range of.Documents {
		s.Documents[i] = Document{
			Name: d.Name, Rules: d.Rules, Revision: d.Revision, AppliedAt: timeOf(c, d.AppliedAt),
			Rejected: textOf(d.Rejected), RejectedRevision: d.RejectedRevision,
		}
		if d.AppliedAt != 0 {
			s.Documents[i].Digest = hex.EncodeToString(d.Digest[:])
		}
	}
	return s
}

// timeOf returns an instant of the clock as the wall clock tells it, the zero one as the zero time.
func timeOf(c clock.Clock, at clock.Instant) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return clock.TimeOf(c, at)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
