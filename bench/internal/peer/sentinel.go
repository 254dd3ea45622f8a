package peer

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/alibaba/sentinel-golang/core/isolation"
	"github.com/alibaba/sentinel-golang/core/stat"
	"github.com/alibaba/sentinel-golang/core/system"
	"github.com/alibaba/sentinel-golang/util"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/penstock-go/penstock/clock"
)

const sentinelName = "sentinel"

// Start starts Sentinel as its users run it, with statistics, collectors and metric log
// at their defaults. There are two exceptions: nothing goes to its record log, and the
// metric log is in a folder that stop removes. Call it once in a process, before
// anything else of Sentinel. It also silences go-zero, which logs every refusal and, in each
// process that has it, every minute.
func Start() (stop func(), err error) {
	logx.Disable()
	dir, err := os.MkdirTemp("", "sentinel-")
	if err != nil {
		return nil, fmt.Errorf("peer: folder for the logs of sentinel: %w", err)
	}
	entity := config.NewDefaultConfig()
	entity.Sentinel.App.Name = "bench"
	entity.Sentinel.Log.Dir = dir
	entity.Sentinel.Log.Logger = silent{}
	if err := api.InitWithConfig(entity); err != nil {
		return nil, fmt.Errorf("peer: start sentinel: %w", err)
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}

// Reset removes Sentinel's rules and statistics. They are global to the process and
// would slow down what is measured next. What its exporter of metrics has stored for
// each name stays.
func Reset() error {
	util.SetClock(util.NewRealClock())
	err := errors.Join(flow.ClearRules(), isolation.ClearRules(), circuitbreaker.ClearRules(), hotspot.ClearRules(), system.ClearRules())
	if err != nil {
		return fmt.Errorf("peer: clear the rules of sentinel: %w", err)
	}
	stat.ResetResourceNodeMap()
	return nil
}

func sentinelLimiter(settings Settings) Limiter { return sentinelWith(settings, Reject) }

func sentinelQueue(settings Settings) Limiter { return sentinelWith(settings, Throttle) }

func sentinelWith(settings Settings, kind Kind) Limiter {
	return Limiter{Name: sentinelName, New: func(limit int) (Try, error) {
		guards := sentinel{}
		settings.applyToSentinel()
		if err := guards.Prepare([]Rule{{Resource: resource, Limit: float64(limit), Kind: kind}})(); err != nil {
			return nil, err
		}
		return func(int) bool { return guards.Call(resource) }, nil
	}}
}

// applyToSentinel applies the settings that Sentinel has. It has no bound on
// resources.
func (s Settings) applyToSentinel() {
	if s.Clock != nil {
		util.SetClock(sentinelClock{s.Clock})
	}
}

// sentinel has no fields: the state of Sentinel is global.
type sentinel struct{}

// Prepare makes rules for LoadRules, which Sentinel's data sources call after every
// change.
func (sentinel) Prepare(set []Rule) func() error {
	native := make([]*flow.Rule, len(set))
	for i, rule := range set {
		native[i] = &flow.Rule{ID: fmt.Sprint(i), Resource: rule.Resource, Threshold: rule.Limit}
		switch rule.Kind {
		case WarmUp:
			native[i].TokenCalculateStrategy = flow.WarmUp
			native[i].WarmUpPeriodSec = uint32(warmUpPeriod / time.Second)
			native[i].WarmUpColdFactor = config.DefaultWarmUpColdFactor
		case Throttle:
			native[i].ControlBehavior = flow.Throttling
			native[i].MaxQueueingTimeMs = uint32(longestWait / time.Millisecond)
		case Reject:
		}
	}
	return func() error {
		_, err := flow.LoadRules(native)
		return err
	}
}

func (sentinel) Call(resource string) bool {
	entry, blocked := api.Entry(resource)
	if blocked != nil {
		return false
	}
	entry.Exit()
	return true
}

func (sentinel) Enter(resource string) (func(), error) {
	entry, blocked := api.Entry(resource)
	if blocked != nil {
		return nil, blocked
	}
	return func() { entry.Exit() }, nil
}

// sentinelClock adapts a clock to the interface of Sentinel.
type sentinelClock struct{ clock clock.Clock }

func (c sentinelClock) Now() time.Time            { return c.clock.Now().Time() }
func (c sentinelClock) CurrentTimeMillis() uint64 { return uint64(c.Now().UnixMilli()) }
func (c sentinelClock) CurrentTimeNano() uint64   { return uint64(c.clock.Now()) }

func (c sentinelClock) Sleep(d time.Duration) {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	<-timer.C()
}

// silent is a logger that discards everything.
type silent struct{}

func (silent) Debug(string, ...any)        {}
func (silent) DebugEnabled() bool          { return false }
func (silent) Info(string, ...any)         {}
func (silent) InfoEnabled() bool           { return false }
func (silent) Warn(string, ...any)         {}
func (silent) WarnEnabled() bool           { return false }
func (silent) Error(error, string, ...any) {}
func (silent) ErrorEnabled() bool          { return false }
