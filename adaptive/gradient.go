package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// The constants of gradient2, see [gradientControl].
const (
	gradientTolerance = 1.5 // response times may be longer than usual by this factor
	gradientLeast     = 0.5
	gradientSmoothing = 0.2
	gradientDrift     = 2    // the long run is corrected when it is above the present by this factor,
	gradientDecay     = 0.95 // by this one

	// A window has so many calls, or is that long.
	gradientCalls = 32
	gradientTime  = time.Second

	// The long run is a mean of response times, of which later ones count more: the weight
	// falls to 1/e in this time; while the limit refuses calls, in the other one, for
	// then response times are those of a busy service.
	gradientLong     = time.Minute
	gradientLongBusy = 10 * time.Minute
	gradientWarmUp   = 10 // windows, of which the plain mean counts
)

// gradientControl is gradient2 of Netflix' concurrency-limits. It compares the mean
// response time of a window with that of the long run, and multiplies the limit by the
// gradient, 1.5 × long / short, from 0.5 to 1. The limit grows by its square root, but not
// while less than half of it is in use.
type gradientControl struct {
	rule    Rule
	limit   float64
	long    float64 // mean response time of the long run, ns; 0 if nothing is known
	windows int     // that long rests on, up to gradientWarmUp

	// The window that is open.
	calls, took, refused float64
	span                 time.Duration
}

func newGradient(r Rule, env rule.Env) rule.Limiter {
	return newShedLimiter(r, env, &gradientControl{rule: r, limit: float64(r.InitialLimit)})
}

func (g *gradientControl) adopt(r Rule) { g.rule = r }

func (g *gradientControl) update(_ clock.Instant, l *shedLimiter, i *interval) verdict {
	g.calls += i.counted
	g.took += i.took
	g.refused += i.refused
	g.span += i.length
	if g.calls > 0 && (g.calls >= gradientCalls || g.span >= gradientTime) {
		g.close()
		l.state.failedFrom.Store(int64(g.long))
	}
	g.limit = max(float64(g.rule.MinLimit), min(g.limit, float64(g.rule.MaxLimit)))
	return verdict{uint32(g.limit), math.Inf(1)}
}

// close ends the window and moves the limit.
func (g *gradientControl) close() {
	short := g.took / g.calls
	refusing := g.refused > 0
	used := g.took / float64(g.span) // calls under way on average
	g.learn(short, g.span, refusing)
	g.calls, g.took, g.refused, g.span = 0, 0, 0, 0
	if used < g.limit/2 && !refusing {
		return
	}
	gradient := max(gradientLeast, min(gradientTolerance*g.long/short, 1))
	wanted := g.limit*gradient + math.Sqrt(g.limit)
	g.limit += gradientSmoothing * (wanted - g.limit)
}

// learn has the long run follow a window. Refusing says that the limit refused calls in it.
func (g *gradientControl) learn(short float64, span time.Duration, refusing bool) {
	memory := gradientLong
	if refusing {
		memory = gradientLongBusy
	}
	weight := -math.Expm1(-float64(span) / float64(memory))
	if g.windows < gradientWarmUp {
		g.windows++
		weight = 1 / float64(g.windows)
	}
	g.long += weight * (short - g.long)
	if g.long > gradientDrift*short {
		g.long *= gradientDecay
	}
}

func (g *gradientControl) gauges() (limit, baseline float64) {
	if g.windows == 0 {
		return math.Floor(g.limit), math.NaN()
	}
	return math.Floor(g.limit), g.long / float64(time.Second)
}
