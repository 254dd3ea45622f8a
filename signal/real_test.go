package signal_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal"
)

// all are the signals of the system.
func all() []rule.Signal {
	return []rule.Signal{
		rule.SignalCPU, rule.SignalLoad, rule.SignalMemory, rule.SignalSchedulerDelay, rule.SignalGC, rule.SignalThrottled,
	}
}

// What this machine shows can be read, or the error says why not.
func TestSignalsOfThisMachineCanBeRead(t *testing.T) {
	source := signal.System()
	for range 2 {
		for _, s := range all() {
			value, err := source.Read(t.Context(), s)
			t.Log(s, value, err)
			if err != nil && s != rule.SignalGC && s != rule.SignalSchedulerDelay {
				require.Regexp(t, "/proc|cgroup|cannot be read on "+runtime.GOOS, err.Error())
				continue
			}
			require.NoError(t, err, s)
			require.GreaterOrEqual(t, value, 0.0, s)
			if s != rule.SignalLoad && s != rule.SignalSchedulerDelay {
				require.LessOrEqual(t, value, 1.0, s)
			}
		}
	}
}
