package sourcetest_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// faultVariable names, in the environment, the fault of the source that
// TestSourceWithFault runs the suite with.
const faultVariable = "PENSTOCK_TEST_SOURCE_FAULT"

func TestMain(m *testing.M) {
	if os.Getenv(faultVariable) != "" {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

func harness(f fault) sourcetest.Harness {
	open := func(password string) func(*testing.T, sourcetest.Store, sourcetest.Options) core.Source {
		return func(_ *testing.T, s sourcetest.Store, opts sourcetest.Options) core.Source {
			return &source{store: s.(*store), password: password, fault: f, log: opts.Logger}
		}
	}
	return sourcetest.Harness{
		NewStore:    func(*testing.T) sourcetest.Store { return newStore() },
		Open:        open(password),
		OpenRefused: open(wrongPassword),
		Secrets:     []string{password, wrongPassword},
	}
}

func TestSourceWithoutFaultsPasses(t *testing.T) { sourcetest.Run(t, harness("")) }

// TestSourceWithFault fails, in a process of its own that TestEachFaultFails starts.
func TestSourceWithFault(t *testing.T) {
	f := fault(os.Getenv(faultVariable))
	if f == "" {
		t.Skip("runs in a process of its own")
	}
	h := harness(f)
	h.Patience = time.Second
	sourcetest.Run(t, h)
}

func TestEachFaultFails(t *testing.T) {
	for f, promise := range map[fault]string{
		missesWhatChangedWhileAway: "ChangesMadeWhileUnreachableArrive",
		ignoresLowerRevisions:      "DocumentsOfAReplacedStoreAreRead",
		remembersTheRunBefore:      "SecondRunReadsAnew",
		clearsAllWhenUnreachable:   "DocumentsStayWhileUnreachable",
		emptyWhenUnreachable:       "StoreThatStartsLaterIsRead",
		leaksAGoroutine:            "RunEndsWithItsContext",
		ignoresItsContext:          "RunEndsWhileUnreachable",
		logsThePassword:            "SecretsAreNotShown",
		showsThePasswordInErrors:   "RefusedCredentialsAreReported",
		busyLoops:                  "FailedAttemptsPause",
		deliversPartialReads:       "CutReadIsNotDelivered",
		firstIsNotComplete:         "FirstChangeIsComplete",
		losesEveryThirdChange:      "NoUpdateIsLostUnderCuts",
		goesBack:                   "WritesArriveInOrder",
		hidesOutages:               "EngineKeepsItsRulesWhileUnreachable",
		escapesNames:               "NamesOfAnyCharactersArriveAsWritten",
		takesEmptyForRemoved:       "EmptyDocumentIsNotARemoval",
		failsAllForOne:             "TooLongDocumentIsFaultyAlone",
		appliesConcurrently:        "TwoRunsAtOnceAreIndependent",
		endsOnErrors:               "StoreThatStartsLaterIsRead",
		believesNotifications:      "HiddenChangesArrive",
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			test := exec.CommandContext(t.Context(), os.Args[0],
				"-test.run=^TestSourceWithFault$/^"+promise+"$", "-test.v", "-test.timeout=2m")
			test.Env = append(os.Environ(), faultVariable+"="+string(f))
			output, err := test.CombinedOutput()
			require.Error(t, err, "the suite passes a source that %s", f)
			assert.Contains(t, string(output), "--- FAIL: TestSourceWithFault/"+promise)
			assert.NotContains(t, string(output), "panic:")
		})
	}
}
