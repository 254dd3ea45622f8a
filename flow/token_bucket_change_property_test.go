package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// A burst that is made smaller and larger again, however often, yields no more
// tokens than the largest bucket would hold by now if it had been there all the time.
func TestChangingTheBurstYieldsNoTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SampledFrom([]float64{0.5, 1, 10, 1000})
		bursts := rapid.SampledFrom([]float64{1, 2.5, 10, 100, 1000})
		of := bucket(limits.Draw(t, "limit"), bursts.Draw(t, "burst"))
		l := newTestQueue(t, of)
		given, most := of.Burst, of.Burst // by time, in the largest bucket so far
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.SampledFrom([]int32{1, 3, 10, 50}).Draw(t, "n")
				if l.arrive(n) == rule.Pass {
					given -= float64(n)
					require.GreaterOrEqual(t, given, -1e-6*most)
				}
			},
			"drain": func(t *rapid.T) {
				_, remaining, _ := l.queue.Status(l.now)
				if remaining > 0 {
					require.Equal(t, rule.Pass, l.arrive(int32(remaining)))
					given -= float64(remaining)
				}
				require.GreaterOrEqual(t, given, -1e-6*most)
			},
			"give back": func(t *rapid.T) {
				if len(l.passes) == 0 || l.passes[len(l.passes)-1].at != l.now.Sub(epoch) {
					t.Skip("nothing was taken just now")
				}
				given += float64(l.passes[len(l.passes)-1].turn.Tokens())
				l.giveBackLast()
			},
			"time passes": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute}).Draw(t, "time")
				l.moveTo(l.now.Sub(epoch) + d)
				given = min(most, given+d.Seconds()*l.rule.Limit)
			},
			"another burst": func(t *rapid.T) {
				burst := bursts.Draw(t, "burst")
				l.change(func(r *flow.Rule) { r.Burst = burst })
				most = max(most, burst)
			},
			"another limit": func(t *rapid.T) {
				limit := limits.Draw(t, "limit")
				l.change(func(r *flow.Rule) { r.Limit = limit })
			},
		})
	})
}

func TestBurstLoweredAndRaisedAgainKeepsItsTokens(t *testing.T) {
	t.Parallel()
	l := newTestQueue(t, bucket(1, 1000))
	require.Equal(t, rule.Pass, l.arrive(400))
	for range 20 {
		l.change(func(r *flow.Rule) { r.Burst = 10 })
		l.change(func(r *flow.Rule) { r.Burst = 1000 })
	}
	_, remaining, _ := l.queue.Status(l.now)
	assert.Equal(t, int64(600), remaining)

	l.change(func(r *flow.Rule) { r.Burst = 10 })
	require.Equal(t, rule.Pass, l.arrive(6), "six tenths of it")
	require.Equal(t, rule.Block, l.arrive(1))
	l.moveTo(5 * time.Second)
	l.change(func(r *flow.Rule) { r.Burst = 1000 })
	_, remaining, _ = l.queue.Status(l.now)
	assert.Equal(t, int64(500), remaining, "the share that the small one had")
	l.change(func(r *flow.Rule) { r.Burst = 10 })
	l.moveTo(10 * time.Second)
	l.change(func(r *flow.Rule) { r.Burst = 1000 })
	_, remaining, _ = l.queue.Status(l.now)
	assert.Equal(t, int64(604), remaining, "what time has given: no more")
}
