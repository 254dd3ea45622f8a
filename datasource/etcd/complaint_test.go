package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func TestErrorIsLoggedAgainWhenItSaysSomethingElse(t *testing.T) {
	reset := func(port int) error {
		return fmt.Errorf("read tcp 127.0.0.1:%d: connection reset by peer", port)
	}
	denied := errors.New("etcdserver: permission denied")
	var c complaint
	var now clock.Instant
	for _, step := range []struct {
		after time.Duration
		err   error
		want  bool
	}{
		{0, reset(41234), true},
		{time.Minute, reset(41234), false},
		{time.Minute, reset(51235), false},
		{0, denied, true},
		{time.Minute, denied, false},
		{0, reset(41236), true},
		{time.Millisecond, denied, false},
		{time.Second - 2*time.Millisecond, denied, false},
		{time.Millisecond, denied, true},
	} {
		now = now.Add(step.after)
		assert.Equal(t, step.want, c.next(step.err, now), "%v at %v", step.err, now)
	}
	lines := 0
	for i := range 10_000 {
		now = now.Add(time.Millisecond)
		if c.next([]error{reset(i), denied}[i%2], now) {
			lines++
		}
	}
	assert.LessOrEqual(t, lines, 11, "in ten seconds")
	assert.GreaterOrEqual(t, lines, 5)
}

func TestSameReasonIsReportedInTheSameWords(t *testing.T) {
	first, other := errors.New("read tcp 127.0.0.1:41234: EOF"), errors.New("permission denied")
	r := &run{Source: &Source{opts: Options{Clock: clock.System()}}}
	assert.Equal(t, first, r.reason(first))
	assert.Equal(t, first, r.reason(errors.New("read tcp 127.0.0.1:51235: EOF")))
	assert.Equal(t, other, r.reason(other))
	assert.Equal(t, first, r.reason(first))
	r.connected()
	again := errors.New("read tcp 127.0.0.1:51236: EOF")
	assert.Equal(t, again, r.reason(again))
}

// Documents that change have the report written, and it is looked at in between:
// each fails for the same cause.
func TestReportThatCannotBeReadNorWrittenIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	virtual := clock.NewVirtual(time.Now())
	r := reporter{source: &Source{opts: Options{Clock: virtual, Logger: slog.New(slog.NewTextHandler(&log, nil))}}}
	denied, away := errors.New("etcdserver: permission denied"), errors.New("connection refused")
	for range 10 {
		r.judge(t.Context(), fmt.Errorf("reading it: %w", denied))
		virtual.Advance(time.Minute)
		r.judge(t.Context(), fmt.Errorf("writing it: %w", denied))
		virtual.Advance(time.Minute)
	}
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), log.String())
	r.judge(t.Context(), fmt.Errorf("writing it: %w", away))
	assert.Equal(t, 2, bytes.Count(log.Bytes(), []byte("\n")), log.String())
	assert.Contains(t, log.String(), "writing it: connection refused")
}
