package metriclog

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// kept is for how long the engine surely knows what happened in a second that has ended.
const kept = 58 * time.Second

// Run writes the log of an engine, of [penstock.Default] if that is nil, until ctx ends. Then it
// writes what has happened up to that instant, and returns nil. It returns an error at once if the
// options have mistakes, all of them together. Faults of the disk do not end it: see the
// documentation of the package. Run it once for each engine.
func Run(ctx context.Context, engine *core.Engine, options Options) error {
	options, err := options.complete()
	if err != nil {
		return err
	}
	if engine == nil {
		engine = penstock.Default()
	}
	r := &run{clock: engine.Clock(), writer: writer{options: options}, log: options.Logger}
	r.next = wholeSecond(r.clock.Now())
	r.seconds = engine.Seconds(r.next)
	timer := r.clock.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			r.writeUpTo(wholeSecond(r.clock.Now()).Add(-time.Second))
			timer.Reset(wholeSecond(r.clock.Now()).Add(time.Second).Sub(r.clock.Now()))
		case <-ctx.Done():
			r.writeUpTo(r.clock.Now().Add(1))
			r.end()
			return nil
		}
	}
}

type run struct {
	clock   clock.Clock
	seconds func(at clock.Instant) []core.ResourceSecond
	writer  writer
	log     *slog.Logger
	next    clock.Instant // the second to be read next
	lines   []Line        // that were read and could not be written yet, of one second
	tidied  file          // after which there are no more files than there may be

	fault     error // of the last second that was written
	isFailing bool  // and the log says so
	joined    int   // seconds since it is that have no lines of their own
}

// writeUpTo writes all seconds that began before an instant.
func (r *run) writeUpTo(end clock.Instant) {
	for r.write() && r.next < end {
		r.read()
	}
	if r.fault == nil {
		r.works()
	}
}

// read reads the next second. Seconds that are older than the engine knows are joined with it.
func (r *run) read() {
	if oldest := wholeSecond(r.clock.Now().Add(-kept)); r.next < oldest {
		r.joined += int(oldest.Sub(r.next) / time.Second)
		r.next = oldest
	}
	seconds := r.seconds(r.next)
	r.lines = make([]Line, len(seconds))
	at := clock.TimeOf(r.clock, r.next) // of all lines, also if the wall clock is set meanwhile
	for i := range seconds {
		r.lines[i] = lineOf(&seconds[i], at)
	}
	r.next = r.next.Add(time.Second)
}

// write writes the lines that were read, if there are any. It returns false if it cannot.
func (r *run) write() bool {
	if len(r.lines) == 0 {
		return true
	}
	if err := r.writer.write(r.lines[0].Time, r.lines); err != nil {
		r.failed(err)
		return false
	}
	r.lines, r.fault = nil, nil
	if err := r.removeOldest(); err != nil {
		r.failed(err)
	}
	return true
}

// end closes the files, and logs what could not be written.
func (r *run) end() {
	if err := r.writer.close(); err != nil {
		r.failed(err)
	}
	if len(r.lines) > 0 {
		r.log.Error("penstock: the metric log ends with calls that could not be written",
			slog.String("dir", r.writer.options.Dir), slog.Time("since", r.lines[0].Time))
	}
}

// removeOldest removes the oldest files after another one was begun.
func (r *run) removeOldest() error {
	if r.writer.file == r.tidied {
		return nil
	}
	o := &r.writer.options
	if err := removeOldest(o.Dir, o.App, o.MaxFiles, r.writer.file); err != nil {
		return err
	}
	r.tidied = r.writer.file
	return nil
}

// failed logs the first of several faults.
func (r *run) failed(err error) {
	r.fault = err
	if !r.isFailing {
		r.isFailing, r.joined = true, 0
		r.log.Error("penstock: the metric log has a fault, it is tried again each second",
			slog.String("dir", r.writer.options.Dir), slog.Any("error", err))
	}
}

func (r *run) works() {
	if r.isFailing {
		r.log.Info("penstock: the metric log is written again", slog.String("dir", r.writer.options.Dir), slog.Int("joinedSeconds", r.joined))
	}
	r.isFailing, r.joined = false, 0
}

// wholeSecond returns the beginning of the second that has the instant.
func wholeSecond(at clock.Instant) clock.Instant { return at - at%clock.Instant(time.Second) }
