package kindtest

import (
	"fmt"
	"slices"
	"strings"
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

	// Start is when the tests begin, for rules that follow the calendar or the time of day: Passes is what they let
	// pass then. Defaults to 2030-03-17 17:46:40 UTC.
	Start time.Time

	// Release lets what a call waits for come, for queues in which calls do not wait for others to end or for a time:
	// with it each call that waits in tests has a value of its own, and Release is called with one of them. nil for
	// other kinds.
	Release func(rule.Queue, rule.Call)

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
		{"WaitsEndInTime", waitsEndInTime},
		{"RetireEndsWaits", retireEndsWaits},
		{"WaitsEndWithTheRuleForThem", waitsEndWithTheRuleForThem},
		{"QueuesAreBounded", queuesAreBounded},
		{"ForcedStatesHold", forcedStatesHold},
		{"StateChangesAreReported", stateChangesAreReported},
		{"ExtremesPanicNowhere", extremesPanicNowhere},
		{"EngineLetsSoManyPass", engineLetsSoManyPass},
		{"EngineKeepsTheStateOverReloads", engineKeepsTheStateOverReloads},
		{"RefusalsByOtherRulesTakeNothing", refusalsByOtherRulesTakeNothing},
	}
}

// Run tests the kind and each rule, each promise in a test of its own. A promise that a rule
// cannot break, as one of a queue where there is none, is skipped. At the end Run logs what was skipped for all
// rules: go test -v shows it, and it may name what another rule, or a field of [Rule], would have had tested.
func Run(t *testing.T, o Options) {
	for _, p := range ofKind() {
		t.Run(p.name, func(t *testing.T) { p.check(newFixture(t, o, Rule{})) })
	}
	skipped := make(map[string][]string) // reasons, by the names of promises
	for i, r := range o.Rules {
		name := r.Rule.WithDefaults().Key().Name
		t.Run(fmt.Sprintf("%d %s", i, name), func(t *testing.T) {
			for _, p := range ofRules() {
				t.Run(p.name, func(t *testing.T) {
					noted := &skips{T: t}
					defer func() {
						if t.Skipped() {
							skipped[p.name] = append(skipped[p.name], noted.why)
						}
					}()
					if why := r.Lacks[p.name]; why != "" {
						noted.Skip(why)
					}
					p.check(newFixture(noted, o, r))
				})
			}
		})
	}
	for _, line := range summary(skipped, len(o.Rules)) {
		t.Log(line)
	}
}

// skips is a test that notes why it is skipped.
type skips struct {
	*testing.T
	why string
}

// Skip implements [reporter].
func (s *skips) Skip(args ...any) {
	s.Helper()
	s.why = fmt.Sprint(args...)
	s.T.Skip(args...)
}

// summary returns the promises that were skipped for all of so many rules, and why.
func summary(skipped map[string][]string, rules int) (lines []string) {
	for _, p := range ofRules() {
		if why := skipped[p.name]; len(why) == rules && rules > 0 {
			slices.Sort(why)
			lines = append(lines, "skipped for all rules: "+p.name+": "+strings.Join(slices.Compact(why), "; "))
		}
	}
	return lines
}
