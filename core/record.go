package core

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/recording"
)

// defaultRecorderMemory is how many bytes of calls a recorder keeps by default.
const defaultRecorderMemory = 16 << 20

// Recorder says how calls are recorded, see [Config.Recorder].
type Recorder struct {
	// Memory is how many bytes of calls are kept, the oldest make room for the new: 16 a call, 16 more
	// if it has options, and 8 more for each attribute. Names take up to some MiB beside
	// it. Defaults to 16 MiB.
	Memory int

	// Values has values of attributes recorded as they are: names of users, addresses, tokens. Without it
	// they are hashed with a secret that never leaves the engine. Replays by rules that name values, or
	// look them up in lists, need them.
	Values bool
}

// recorders is who wants calls to be recorded.
type recorders struct {
	config *Recorder // nil unless calls are always recorded

	mu    sync.Mutex
	users int // of the recorder that is on, beside the configuration
}

// ErrNotRecording is returned by [Engine.Recorded] of an engine that does not record calls.
var ErrNotRecording = errors.New("core: the engine does not record calls: set Config.Recorder, or use Record")

// Record records the calls of the time to come, and returns them when it is over: the recorder is on only
// as long as somebody waits for it, unless the engine has a [Config.Recorder]. The error is that of ctx,
// or [ErrClosed].
func (e *Engine) Record(ctx context.Context, d time.Duration) (*recording.Recording, error) {
	rec, from := e.startRecording(), e.clock.Now()
	defer e.stopRecording()
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

// startRecording switches the recorder on unless it is.
func (e *Engine) startRecording() *recorder.Recorder {
	e.recorders.mu.Lock()
	defer e.recorders.mu.Unlock()
	e.recorders.users++
	return e.ensureRecorder()
}

// ensureRecorder returns the recorder. The caller holds the mutex, or nobody else has the engine.
func (e *Engine) ensureRecorder() *recorder.Recorder {
	if rec := e.recorder.Load(); rec != nil {
		return rec
	}
	var of Recorder
	if e.recorders.config != nil {
		of = *e.recorders.config
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	memory := of.Memory
	if memory <= 0 {
		memory = defaultRecorderMemory
	}
	rec := recorder.New(memory, of.Values, secret, e.clock)
	e.recorder.Store(rec)
	return rec
}

// stopRecording switches the recorder off when nobody needs it any more.
func (e *Engine) stopRecording() {
	e.recorders.mu.Lock()
	defer e.recorders.mu.Unlock()
	if e.recorders.users--; e.recorders.users == 0 && e.recorders.config == nil {
		e.recorder.Store(nil)
	}
}
