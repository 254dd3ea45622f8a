package limit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
)

// service answers each call after a time, and has so many workers. There is always a call
// that waits to be let in.
type service struct {
	workers float64
	time    float64 // seconds
	fails   float64 // share of the calls
}

// close hands windows to the control in which the service worked at its limit.
func (s service) close(c *limit.Control, times int) {
	for range times {
		if c.Draining() {
			c.Drained()
		}
		least, most, ends := c.Need()
		busy := min(c.Limit(), s.workers)
		rate := busy / s.time
		length := min(max(least, time.Duration(ends/rate*float64(time.Second))), most)
		n := rate * length.Seconds()
		response := c.Limit() / rate
		c.Close(limit.Window{
			Length: length, Full: length, Over: true, Ends: n, Calls: c.Limit() * length.Seconds(),
			Times: n * response, Squares: 2 * n * response * response, Failed: s.fails * n, Late: s.fails * n,
		})
	}
}

// usual returns the limit that is in force in most of the next windows, between probes.
func (s service) usual(c *limit.Control) float64 {
	var limits []float64
	for range 51 {
		s.close(c, 1)
		limits = append(limits, c.Limit())
	}
	slices.Sort(limits)
	return limits[len(limits)/2]
}

func TestControlFindsTheWorkersOfASaturatedService(t *testing.T) {
	t.Parallel()
	for _, workers := range []float64{1, 2, 8, 30, 100, 300} {
		c := limit.New(20, 1, 1000)
		s := service{workers, 0.010, 0}
		s.close(c, 200)
		limit := s.usual(c)
		assert.GreaterOrEqual(t, limit, workers, "%v workers", workers)
		assert.LessOrEqual(t, limit, 1.7*workers+1, "%v workers", workers)
		assert.InEpsilon(t, 0.010, c.Baseline(), 0.1, "%v workers", workers)
	}
}

// Whatever the limit begins with, it does not rise by the queue that it causes.
func TestControlDoesNotTakeAQueueForTheService(t *testing.T) {
	t.Parallel()
	for _, initial := range []int{20, 200, 1000} {
		c := limit.New(initial, 1, 1000)
		s := service{8, 0.010, 0}
		for range 50 {
			s.close(c, 40)
			assert.LessOrEqual(t, c.Limit(), float64(initial))
		}
		assert.LessOrEqual(t, s.usual(c), 12.0)
		assert.InEpsilon(t, 0.010, c.Baseline(), 0.1)
	}
}

func TestControlFollowsAServiceThatBecomesSlowerAndFasterAgain(t *testing.T) {
	t.Parallel()
	c := limit.New(20, 1, 1000)
	service{8, 0.010, 0}.close(c, 200)
	service{8, 0.050, 0}.close(c, 100)
	assert.InEpsilon(t, 0.050, c.Baseline(), 0.1)
	assert.InDelta(t, 10, service{8, 0.050, 0}.usual(c), 3)
	service{8, 0.010, 0}.close(c, 100)
	assert.InEpsilon(t, 0.010, c.Baseline(), 0.1)
	assert.InDelta(t, 10, service{8, 0.010, 0}.usual(c), 3)
}

func TestControlHalvesTheLimitWhileCallsFailLateAndRestoresIt(t *testing.T) {
	t.Parallel()
	c := limit.New(20, 1, 1000)
	service{8, 0.010, 0}.close(c, 200)
	before := service{8, 0.010, 0}.usual(c)
	service{8, 0.010, 1}.close(c, 10)
	assert.LessOrEqual(t, c.Limit(), 2.0)
	assert.InEpsilon(t, 0.010, c.Baseline(), 0.1, "nothing is learned")
	assert.InEpsilon(t, before, service{8, 0.010, 0}.usual(c), 0.25)
}

func TestControlKeepsItsBounds(t *testing.T) {
	t.Parallel()
	c := limit.New(20, 5, 50)
	service{500, 0.010, 0}.close(c, 100)
	assert.InDelta(t, 50, c.Limit(), 0)
	c.SetBounds(2, 30)
	assert.LessOrEqual(t, c.Limit(), 50.0)
	service{500, 0.010, 0}.close(c, 20)
	assert.LessOrEqual(t, c.Limit(), 30.0)
}

func TestControlGrowsWhenNoCallEnds(t *testing.T) {
	t.Parallel()
	c := limit.New(4, 2, 6)
	hung := limit.Window{Length: 10 * time.Second, Full: 10 * time.Second, Calls: 40}
	c.Close(hung)
	assert.InDelta(t, 5, c.Limit(), 0)
	c.Close(hung)
	c.Close(hung)
	assert.InDelta(t, 6, c.Limit(), 0)
}
