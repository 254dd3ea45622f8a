package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
)

// timerModel is a model of a timer.
type timerModel struct {
	timer clock.Timer
	armed bool
	due   clock.Instant
	holds *clock.Instant // the value in its channel
}

func (m *timerModel) arm(now clock.Instant, d time.Duration) {
	m.armed, m.due, m.holds = true, now.Add(d), nil
	m.move(now)
}

// move fires the timer if it is due by now. A timer that was due before it was set
// fires when it is set.
func (m *timerModel) move(now clock.Instant) {
	if m.armed && m.due <= now {
		m.armed, m.holds = false, &m.due
	}
}

func TestVirtualTimersMatchTheirModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newVirtual()
		now := c.Now()
		var timers []*timerModel
		delay := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 20).Draw(t, "d")) * time.Millisecond
		})
		pick := func(t *rapid.T) *timerModel {
			if len(timers) == 0 {
				t.Skip("no timer yet")
			}
			return rapid.SampledFrom(timers).Draw(t, "timer")
		}
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) {
				d := delay.Draw(t, "delay")
				m := &timerModel{timer: c.NewTimer(d)}
				m.arm(now, d)
				timers = append(timers, m)
			},
			"reset": func(t *rapid.T) {
				m, d := pick(t), delay.Draw(t, "delay")
				m.timer.Reset(d)
				m.arm(now, d)
			},
			"stop": func(t *rapid.T) {
				m := pick(t)
				m.timer.Stop()
				m.armed, m.holds = false, nil
			},
			"advance": func(t *rapid.T) {
				d := delay.Draw(t, "delay")
				c.Advance(d)
				now = now.Add(d)
				for _, m := range timers {
					m.move(now)
				}
			},
			"receive": func(t *rapid.T) {
				m := pick(t)
				at, ok := fired(m.timer)
				assert.Equal(t, m.holds != nil, ok)
				if ok {
					assert.Equal(t, m.holds.Time(), at)
				}
				m.holds = nil
			},
			"": func(t *rapid.T) {
				assert.Equal(t, now, c.Now())
				armed := 0
				for _, m := range timers {
					assert.Equal(t, m.holds != nil, len(m.timer.C()) == 1)
					if m.armed {
						armed++
					}
				}
				assert.Equal(t, armed, c.Timers())
			},
		})
	})
}
