package core

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/recording"
)

// defaultRecorderMemory is how many bytes of calls a recorder keeps by default.
const defaultRecorderMemory = 16 << 20

// ErrNotRecording is returned by [Engine.Recorded] of an engine that does not record calls.
var ErrNotRecording = errors.New("core: the engine does not record calls: set Config.Recorder, or use Record")

// Record records the calls of the time to come, and returns them when it is over: the recorder is on only
// as long as somebody waits for it, unless the engine has a [Config.Recorder]. The error is that of ctx,
// or [ErrClosed].
func (e *Engine) Record(ctx context.Context, d time.Duration) (*recording.Recording, error) {
	rec, from := e.recorder.Start(), e.clock.Now()
	defer e.recorder.Stop()
	if err := e.sleepers.Until(ctx, from.Add(d)); err != nil {
		return nil, err
	}
	return e.readRecorder(rec, from, e.clock.Now()), nil
}

// Recorded returns the calls of the last time, as far as there is memory for them, of an engine that has a
// [Config.Recorder]. The error is [ErrNotRecording].
func (e *Engine) Recorded(last time.Duration) (*recording.Recording, error) {
	rec, now := e.recorder.Load(), e.clock.Now()
	if rec == nil {
		return nil, ErrNotRecording
	}
	return e.readRecorder(rec, max(rec.Since(), now.Add(-last)), now), nil
}

// readRecorder returns the calls that were decided in a time, with instants as the wall clock tells them at
// present: recordings of several machines are merged by them, and windows of the calendar are replayed.
func (e *Engine) readRecorder(rec *recorder.Recorder, from, until clock.Instant) *recording.Recording {
	out := rec.Read(from, until)
	apart := clock.TimeOf(e.clock, until).Sub(until.Time())
	for i := range out.Instances {
		out.Instances[i].From = out.Instances[i].From.Add(apart)
		out.Instances[i].Until = out.Instances[i].Until.Add(apart)
	}
	for i := range out.Calls {
		out.Calls[i].At = out.Calls[i].At.Add(apart)
	}
	return out
}

// initRecorder says how calls are recorded, and has all be recorded if the configuration says so.
func (e *Engine) initRecorder(always *Recorder) {
	var of Recorder
	if always != nil {
		of = *always
	}
	if of.Memory <= 0 {
		of.Memory = defaultRecorderMemory
	}
	e.recorder.Init(of.Memory, of.Values, e.clock)
	if always != nil {
		e.recorder.Start()
	}
}
