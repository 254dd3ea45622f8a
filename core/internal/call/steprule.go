package call

import (
	"sync"

	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// VersionedLimiter is the limiter of one version of a rule. Versions that go on from
// each other have one series, by which a call recognizes the tickets that it has of any of them.
type VersionedLimiter struct {
	rule.Limiter
	Series  uint64        // unique in the engine, from 1
	Pending *PendingCalls // of a limiter that several resources share; else nil
}

// StepRule is a rule of which a chain has a step.
type StepRule struct {
	Version   rule.Rule
	Limiter   VersionedLimiter
	IsShared  bool // all of its resources have the one limiter
	IsRelated bool // it counts the passes of another resource
	Refusals  *Refusals
	Evidence  *Evidence
}

// Fill makes an empty step that of the rule. It looks the interfaces of the limiter up.
func (of *StepRule) Fill(s *Step) {
	limiter, reason := of.Limiter.Limiter, of.Version.Type().Reason()
	if shared, ok := limiter.(optional.Divided); ok && of.IsShared {
		limiter = shared.For(of.Refusals.Resource)
	}
	s.Limiter, s.Series, s.Keyed, s.Refusals = limiter, of.Limiter.Series, of.keyed(limiter), of.Refusals
	s.Denies, s.injects = reason == rule.Denied, reason == rule.Injected
	s.demotes, s.counts = of.Version.Demotes(), countedCallsOf(of.Version.Counts())
	if !s.demotes { // else no call waits for it
		s.queue, _ = limiter.(rule.Queue)
	}
	if decider, ok := limiter.(optional.Decider); ok && s.queue != nil {
		s.decides = decider.DecidesWithin() > 0
	}
	if s.demotes { // it is asked before those that know of later calls
		return
	}
	if s.Forecaster, _ = limiter.(optional.Forecaster); s.Forecaster != nil { // which need not know the attribute
		s.Pending = of.Limiter.Pending
		s.promises = s.Pending == nil && s.queue == nil && !of.IsRelated
	}
}

// keyed returns what the step has if the rule looks at attributes; else nil.
func (of *StepRule) keyed(limiter rule.Limiter) *KeyedStep {
	keys := of.Version.Attributes()
	if len(keys) == 0 {
		return nil
	}
	s := &KeyedStep{keys: keys, evidence: of.Evidence}
	if len(keys) > 1 {
		s.composites = &sync.Pool{New: func() any { return new([rule.MaxKeys]rule.Attribute) }}
	}
	s.late, _ = limiter.(optional.LateReader)
	s.sources, _ = limiter.(optional.SourceReader)
	if p, ok := limiter.(optional.Prefetcher); ok && len(keys) == 1 && p.Prefetches() {
		s.prefetcher = p
	}
	return s
}
