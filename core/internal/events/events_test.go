package events

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

// event is what the log of the tests keeps.
type event struct {
	text        string
	id, skipped uint64
}

func add(l *Log[event], kind string, at clock.Instant, text string) {
	l.Add(kind, at, event{text: text}, func(e *event, id, skipped uint64) { e.id, e.skipped = id, skipped })
}

func TestLogKeepsTheLatestEventsInOrder(t *testing.T) {
	t.Parallel()
	var l Log[event]
	l.Init(3, clock.Instant(5*time.Microsecond))
	changed := l.Changed()
	for i, text := range []string{"a", "b", "c", "d"} {
		add(&l, "kind", clock.Instant(time.Duration(i)*time.Second), text)
	}
	select {
	case <-changed:
	default:
		require.Fail(t, "the channel of a log to which something was added is not closed")
	}
	all, missed := l.After(0)
	assert.False(t, missed)
	assert.Equal(t, []event{{"b", 6, 0}, {"c", 7, 0}, {"d", 8, 0}}, all)
	assert.EqualValues(t, 8, l.Last())
	for after, want := range map[uint64]int{5: 3, 6: 2, 8: 0} {
		some, missed := l.After(after)
		assert.Len(t, some, want, "after %d", after)
		assert.False(t, missed, "after %d", after)
	}
	for _, unknown := range []uint64{4, 9} { // the one after it is gone; it is not of this log
		some, missed := l.After(unknown)
		assert.Len(t, some, 3, "after %d", unknown)
		assert.True(t, missed, "after %d", unknown)
	}
}

func TestLogKeepsSoManyEventsOfATypeInASecond(t *testing.T) {
	t.Parallel()
	var l Log[event]
	l.Init(1000, 0)
	for range inSecond + 7 {
		add(&l, "many", 0, "")
	}
	add(&l, "few", 0, "")
	add(&l, "many", clock.Instant(time.Second), "next")
	all, _ := l.After(0)
	require.Len(t, all, inSecond+2)
	assert.EqualValues(t, 7, all[inSecond+1].skipped)
}
