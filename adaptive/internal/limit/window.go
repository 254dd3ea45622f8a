package limit

import (
	"math"
	"time"
)

// Window is what calls did in a span of time.
type Window struct {
	Length time.Duration

	Ends    float64 // calls that ended, each as much as its work is of that of a mean call
	Ended   float64 // their number
	Failed  float64 // of these, calls that failed or whose end says nothing
	Late    float64 // of these, calls that took long all the same, see [Control.Late]
	Calls   float64 // call-seconds: the integral of the calls under way over the time
	Times   float64 // sum of the response times of the calls that ended, in seconds
	Squares float64 // sum of their squares

	Lost float64 // sum of the response times of those that failed, in seconds

	// GivenUp is the calls of the resources of which many failed late, and EndedWell those of them that did not fail.
	GivenUp, EndedWell float64

	// Patience is how long the calls that failed took on average, in seconds, of the resource of which many failed late
	// and that has the most patient clients.
	Patience float64

	// Quick is the calls of one resource that failed sooner than others of it end, as those that
	// another rule has refused, and QuickTimes the sum of their response times.
	Quick, QuickTimes float64

	// Growth is how many more calls are under way at the end than at the beginning.
	Growth float64

	// Full is for how long calls found the limit reached.
	Full time.Duration

	// AtLimit says that the limit was reached at the end.
	AtLimit bool

	// Slow says that calls of a resource clearly take longer than usual.
	Slow bool

	// Over says that calls have been waiting for so long that more come than can pass.
	Over bool
}

// Plus returns two windows as one.
func (w Window) Plus(o Window) Window {
	return Window{
		Length: w.Length + o.Length, Ends: w.Ends + o.Ends, Ended: w.Ended + o.Ended, Failed: w.Failed + o.Failed, Late: w.Late + o.Late,
		Calls: w.Calls + o.Calls, Times: w.Times + o.Times, Squares: w.Squares + o.Squares,
		Lost: w.Lost + o.Lost, GivenUp: w.GivenUp + o.GivenUp, EndedWell: w.EndedWell + o.EndedWell,
		Patience: max(w.Patience, o.Patience), Quick: w.Quick + o.Quick, QuickTimes: w.QuickTimes + o.QuickTimes,
		Growth: w.Growth + o.Growth, Full: w.Full + o.Full, Over: w.Over || o.Over,
	}
}

// WithoutQuick returns the window of a resource without the calls that failed quickly.
func (w Window) WithoutQuick() Window {
	w.Ends, w.Ended, w.Failed = w.Ends-w.Quick, w.Ended-w.Quick, w.Failed-w.Quick
	w.Lost -= w.QuickTimes
	w.Calls, w.Times = max(w.Calls-w.QuickTimes, 0), w.Times-w.QuickTimes
	w.Quick, w.QuickTimes = 0, 0
	return w
}

// throughput returns how many calls ended in a second.
func (w Window) throughput() float64 { return w.Ends / w.Length.Seconds() }

// inFlight returns the mean number of calls under way.
func (w Window) inFlight() float64 { return w.Calls / w.Length.Seconds() }

// response returns the mean response time in seconds, including calls that are still
// under way (Little's law). The mean of the calls that ended misses long ones.
func (w Window) response() float64 { return w.Calls / w.Ends }

// responseAtLeast returns the mean response time. At the end of a burst, when most of the calls that ended had begun before
// the window, it is that of the calls that ended, if that is longer: what they took before counts, too.
func (w Window) responseAtLeast() float64 {
	if w.Ended < fewEnds || -w.Growth <= w.Ended/2 {
		return w.response()
	}
	return max(w.response(), w.Times/w.Ended)
}

// isSteady says whether as many calls ended as came, but for chance, and most did not fail: else response times are
// perhaps those of calls that pile up.
func (w Window) isSteady() bool {
	return w.Growth <= w.Ended/20+2*math.Sqrt(w.inFlight()) && w.Failed <= w.Ends/2
}

// Good returns the mean response time in seconds of calls that did not fail, which is 0 if all did. It is not known if
// there are too few.
func (w Window) Good() (mean float64, known bool) {
	good := w.Ended - w.Failed
	if good == 0 {
		return 0, w.Ended > 0
	}
	return (w.Times - w.Lost) / good, good >= leastEnds
}

// FailsLate says whether calls that failed took longer than those that did not, by three standard errors, as those do of
// which clients give up: else they failed for another reason. If too few did not, they are compared with those of the
// window before, too, and if that has too few as well, it says so.
func (w Window) FailsLate(before Window) bool {
	if w.Ended-w.Failed < fewEnds {
		w = w.Plus(before)
	}
	w = w.WithoutQuick()
	good := w.Ended - w.Failed
	if good < fewEnds || w.Failed == 0 {
		return true
	}
	ratio := w.Lost / w.Failed / ((w.Times - w.Lost) / good)
	return ratio > 1+3*math.Sqrt(w.variation()*(1/good+1/w.Failed))
}

// full returns for which share of the time calls found the limit reached.
func (w Window) full() float64 { return float64(w.Full) / float64(w.Length) }

// variation returns the squared coefficient of variation of the response times.
func (w Window) variation() float64 {
	if w.Times <= 0 || w.Ends < 2 {
		return 0
	}
	mean := w.Times / w.Ends
	return min(maxVariation, max(0, w.Squares/w.Ends/(mean*mean)-1))
}

// responseNear returns the mean response time that is nearer to an expected one: that of
// [Window.response], or that of the calls that ended. With a few calls either can be far
// off by chance.
func (w Window) responseNear(expected float64) float64 {
	r, ended := w.response(), w.Times/w.Ends
	if math.Abs(ended-expected) < math.Abs(r-expected) {
		return ended
	}
	return r
}
