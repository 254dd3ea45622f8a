package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWindowRetryAfter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule   flow.Rule
		before []int // tokens taken bucket by bucket, the last in the present one
		n      int32
		want   time.Duration
	}{
		"when the only bucket leaves":      {reject(5), []int{5}, 1, time.Second},
		"when the first bucket leaves":     {reject(5), []int{2, 0, 3}, 1, 800 * time.Millisecond},
		"when the first that holds any":    {reject(5), []int{0, 0, 2, 0, 3}, 1, 800 * time.Millisecond},
		"when enough have left":            {reject(5), []int{1, 1, 3}, 3, time.Second},
		"all of it":                        {reject(5), []int{1, 4}, 5, time.Second},
		"never: more than the limit":       {reject(5), []int{5}, 6, rule.Never},
		"never: nothing is allowed":        {reject(0), []int{0}, 1, rule.Never},
		"strict waits one bucket more":     {flow.Rule{Resource: "r", Limit: 5, Strict: true}, []int{5}, 1, 1100 * time.Millisecond},
		"a saved token":                    {reject(0.5), []int{1}, 1, 2 * time.Second},
		"a saved token, a while later":     {reject(0.5), []int{1, 0, 0, 0, 0}, 1, 1600 * time.Millisecond},
		"what one token less makes enough": {reject(5), []int{2, 0}, 5, 900 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.rule)
			for i, n := range test.before {
				g.moveTo(time.Duration(i) * g.bucketLength())
				assert.Equal(t, n, g.pass(n))
			}
			assert.Equal(t, rule.Block, g.take(test.n))
			assert.Equal(t, test.want, g.window.RetryAfter(g.now, test.n))
		})
	}
}

func TestWindowRetryAfterIsHonestWhileASavedTokenIsOut(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(2.5))
	for i, d := range []float64{2.5, 2.7, 3.0} { // the third takes the saved one
		g.moveTo(seconds(d))
		assert.Equal(t, 1, g.pass(1), "call %d", i)
	}
	assert.Equal(t, rule.Block, g.take(1))
	g.wait(g.window.RetryAfter(g.now, 1))
	assert.Equal(t, rule.Pass, g.take(1))
}

func TestWindowStatus(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(5))
	status := func() []any {
		limit, remaining, reset := g.window.Status(g.now)
		return []any{limit, remaining, reset}
	}
	assert.Equal(t, int64(5), status()[1])

	g.moveTo(50 * time.Millisecond)
	g.pass(3)
	assert.Equal(t, []any{5.0, int64(2), 950 * time.Millisecond}, status())
	g.moveTo(250 * time.Millisecond)
	assert.Equal(t, []any{5.0, int64(2), 750 * time.Millisecond}, status(), "without a call in between")
	g.pass(9)
	assert.Equal(t, []any{5.0, int64(0), 750 * time.Millisecond}, status())
	before := status()
	assert.Equal(t, before, status(), "asking changes nothing")

	g.moveTo(time.Second)
	assert.Equal(t, []any{5.0, int64(3), 200 * time.Millisecond}, status(), "three have left, the other two will")
	g.moveTo(time.Minute)
	assert.Equal(t, int64(5), status()[1])
	g.moveTo(time.Second)
	assert.Equal(t, 3, g.pass(9), "looking ahead did not open a bucket")

	g.change(func(r *flow.Rule) { r.Limit = 1 })
	g.window.Adopt(g.compiled, g.now)
	assert.Equal(t, int64(0), status()[1], "what remains is never below zero")
}
