package kindtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func toyOptions(of flaw) Options {
	kind := toyKind(of)
	return Options{Kind: kind, Rules: []Rule{
		{
			Rule: kind.Of(toyRule{Name: "pool", Resource: "r", Limit: 8}), Passes: 8,
			Stricter: kind.Of(toyRule{Name: "pool", Resource: "r", Limit: 3}),
		},
		{
			Rule: kind.Of(toyRule{Name: "queue", Resource: "r", Limit: 2, MaxWait: time.Hour}), Passes: 2,
			Stricter: kind.Of(toyRule{Name: "queue", Resource: "r", Limit: 1, MaxWait: time.Hour}),
		},
	}}
}

func TestKindWithoutFlawsPasses(t *testing.T) { Run(t, toyOptions("")) }

// recorder notes what a check finds.
type recorder struct{ found []string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.found = append(r.found, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (*recorder) Skip(...any) { runtime.Goexit() }

// finds returns what a promise finds in a kind, by any of its rules.
func finds(p promise, o Options, patience time.Duration) []string {
	r := &recorder{}
	rules := o.Rules
	for _, of := range ofKind() {
		if of.name == p.name {
			rules = []Rule{{}}
		}
	}
	for _, of := range rules {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if v := recover(); v != nil {
					r.Errorf("panic: %v", v)
				}
			}()
			f := newFixture(r, o, of)
			f.changes.patience = patience
			p.check(f)
		}()
		<-done
	}
	return r.found
}

// flaws are the mistakes by which each promise can be broken.
func flaws() map[string][]flaw {
	return map[string][]flaw{
		"ExamplesShowEveryField":            {"an example lacks a field"},
		"MistakesAreFoundAtOnce":            {"only the first mistake is reported"},
		"BadValuesPanicNowhere":             {"validation panics"},
		"DocumentSaysWhatTheRuleIs":         {"defaults change"},
		"SoManyPass":                        {"one more passes"},
		"ValuesAreToldApart":                {"values share one count"},
		"RefusalSaysWhenToRetry":            {"refusals say another time than RetryAfter", "RetryAfter is too short"},
		"ForecastsTellWhatCallsFind":        forecasting(),
		"LateInstantsLetNoMorePass":         {"late calls begin anew", "late calls are stale for ever", "late calls are sent nowhere"},
		"GivenBackIsAsIfItHadNeverBeen":     {"nothing is given back", "it is never idle"},
		"TicketsGiveBackWhatTheyStandFor":   {"tickets mean nothing", "nothing is given back"},
		"GivenBackLateFreesNothingOfOthers": {freesOthers},
		"RefundGivesBackNoMoreThanWasTaken": {"more is given back than was taken"},
		"EndsMakeRoom":                      {"ends make no room"},
		"AdoptChangesNothingYet":            {"a newer version is in force at once"},
		"NewerVersionGoesOn":                {"a newer version forgets"},
		"OlderVersionIsStale":               {"an older version goes on", "Activate does nothing"},
		"CallsAllocateNothing":              {"passing allocates", "refusing allocates"},
		"StateIsBounded":                    {"state grows"},
		"ConcurrentCallsTakeNoMore":         {"check and take are two steps"},
		"ReloadsUnderLoadLetNoMorePass":     {"a newer version forgets"},
		"WaitersPassInTheirOrder":           {"the last one passes first"},
		"WaitersAreWoken":                   {"wakes nobody"},
		"WaiterThatLeavesTakesNothing":      {"a call that leaves keeps its place", "what was granted is lost"},
		"WaiterDoesNotPassAfterItsTime":     {"calls pass after their time"},
		"WaitsEndInTime":                    {"waits have no end"},
		"RetireEndsWaits":                   {"calls wait for a rule that is gone", "nobody is told that the rule is gone", "calls that end late panic"},
		"WaitsEndWithTheRuleForThem":        {"calls wait for a rule that is not for them"},
		"QueuesAreBounded":                  {"queues grow"},
		"ForcedStatesHold":                  {"states cannot be forced", "forced states of new limiters are ignored"},
		"StateChangesAreReported":           {"changes are not reported", "changes are reported twice", "changes are reported with the limiter locked"},
		"ExtremesPanicNowhere":              {"it panics at numbers"},
		"EngineLetsSoManyPass":              {"one more passes"},
		"EngineKeepsTheStateOverReloads":    {"a newer version forgets"},
		"RefusalsByOtherRulesTakeNothing":   {"nothing is given back"},
	}
}

func TestEveryPromiseFailsForEachOfItsFlaws(t *testing.T) {
	for _, p := range append(ofKind(), ofRules()...) {
		of := flaws()[p.name]
		if len(of) == 0 {
			t.Errorf("no flaw breaks %s", p.name)
		}
		for _, flaw := range of {
			options := toyOptions
			if flaw == freesOthers {
				options = gapOptions
			}
			mustFind(t, p, flaw, options)
		}
		for _, flaw := range pairFlaws()[p.name] {
			mustFind(t, p, flaw, pairOptions)
		}
		for _, flaw := range hoursFlaws()[p.name] {
			mustFind(t, p, flaw, hoursOptions)
		}
	}
}

// mustFind fails unless a promise finds a flaw, and nothing without it.
func mustFind(t *testing.T, p promise, of flaw, options func(flaw) Options) {
	t.Helper()
	t.Run(p.name+"/"+strings.ReplaceAll(string(of), " ", "-"), func(t *testing.T) {
		if raceEnabled && p.name == "CallsAllocateNothing" {
			t.Skip("the race detector allocates")
		}
		if found := finds(p, options(""), patience); len(found) > 0 {
			t.Errorf("it fails for a kind without flaws: %v", found)
		}
		if found := finds(p, options(of), 100*time.Millisecond); len(found) == 0 {
			t.Errorf("it passes though %s", of)
		}
	})
}
