package kindtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Options say what to test.
type Options struct {
	// Kind is the kind. It may be one that comes with Penstock.
	Kind rule.Definition

	// Rules are what limiters are made of. They should use all that the kind can do.
	Rules []Rule
}

// Rule is a rule of the kind, and what the suite may expect of it.
type Rule struct {
	// Rule is sound; its defaults need not be filled in.
	Rule rule.Rule

	// Resource is the name that calls have. Defaults to the Resource of the rule.
	Resource string

	// Value returns the nth text of each attribute that the rule looks at; different ones for
	// different n. Defaults to "value-n".
	Value func(n int) string

	// Passes is how many calls of one token, and of one value, pass at one instant while none of
	// them ends: [All] if that has no end, 0 for a rule that refuses all. At most 10,000.
	Passes int

	// Again is how long it takes after that, once these calls have ended, until as many pass
	// again: 0 for limits of the calls under way. [rule.Never] if it is not known.
	Again time.Duration

	// Stricter is another version of the rule, by which fewer calls pass, but some. nil tests
	// with the same rule, so that nothing can be told of the state that a version takes over.
	Stricter rule.Rule

	// Forgets says that a changed rule starts anew.
	Forgets bool

	// Lacks are promises that the kind does not keep, by the names of their tests, with the reason
	// in words for users. These tests are skipped.
	Lacks map[string]string
}

// All is the [Rule.Passes] of a rule that lets all calls pass.
const All = -1

// promise is one check of the suite.
type promise struct {
	name  string
	check func(f *fixture)
}

// ofKind are the promises of a kind, ofRules those of each of its rules.
func ofKind() []promise {
	return []promise{
		{"ExamplesShowEveryField", examplesShowEveryField},
		{"MistakesAreFoundAtOnce", mistakesAreFoundAtOnce},
		{"BadValuesPanicNowhere", badValuesPanicNowhere},
	}
}

func ofRules() []promise {
	return []promise{
		{"DocumentSaysWhatTheRuleIs", documentSaysWhatTheRuleIs},
		{"SoManyPass", soManyPass},
		{"ValuesAreToldApart", valuesAreToldApart},
		{"RefusalSaysWhenToRetry", refusalSaysWhenToRetry},
		{"ForecastsTellWhatCallsFind", forecastsTellWhatCallsFind},
		{"LateInstantsLetNoMorePass", lateInstantsLetNoMorePass},
		{"GivenBackIsAsIfItHadNeverBeen", givenBackIsAsIfItHadNeverBeen},
		{"TicketsGiveBackWhatTheyStandFor", ticketsGiveBackWhatTheyStandFor},
		{"GivenBackLateFreesNothingOfOthers", givenBackLateFreesNothingOfOthers},
		{"RefundGivesBackNoMoreThanWasTaken", refundGivesBackNoMoreThanWasTaken},
		{"EndsMakeRoom", endsMakeRoom},
		{"AdoptChangesNothingYet", adoptChangesNothingYet},
		{"NewerVersionGoesOn", newerVersionGoesOn},
		{"OlderVersionIsStale", olderVersionIsStale},
		{"CallsAllocateNothing", callsAllocateNothing},
		{"StateIsBounded", stateIsBounded},
		{"ConcurrentCallsTakeNoMore", concurrentCallsTakeNoMore},
		{"ReloadsUnderLoadLetNoMorePass", reloadsUnderLoadLetNoMorePass},
		{"WaitersPassInTheirOrder", waitersPassInTheirOrder},
		{"WaitersAreWoken", waitersAreWoken},
		{"WaiterThatLeavesTakesNothing", waiterThatLeavesTakesNothing},
		{"WaiterDoesNotPassAfterItsTime", waiterDoesNotPassAfterItsTime},
		{"RetireEndsWaits", retireEndsWaits},
		{"ForcedStatesHold", forcedStatesHold},
		{"ExtremesPanicNowhere", extremesPanicNowhere},
		{"EngineLetsSoManyPass", engineLetsSoManyPass},
		{"EngineKeepsTheStateOverReloads", engineKeepsTheStateOverReloads},
		{"RefusalsByOtherRulesTakeNothing", refusalsByOtherRulesTakeNothing},
	}
}

// Run tests the kind and each rule, each promise in a test of its own. A promise that a rule
// cannot break, as one of a queue where there is none, is skipped.
func Run(t *testing.T, o Options) {
	for _, p := range ofKind() {
		t.Run(p.name, func(t *testing.T) { p.check(newFixture(t, o, Rule{})) })
	}
	for i, r := range o.Rules {
		name := r.Rule.WithDefaults().Key().Name
		t.Run(fmt.Sprintf("%d %s", i, name), func(t *testing.T) {
			for _, p := range ofRules() {
				t.Run(p.name, func(t *testing.T) {
					if why := r.Lacks[p.name]; why != "" {
						t.Skip(why)
					}
					p.check(newFixture(t, o, r))
				})
			}
		})
	}
}
