package metriclog

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// kept is how long the engine surely keeps a second that has ended.
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
	r := &run{engine: engine, clock: engine.Clock(), writer: writer{options: options}, log: options.Logger}
	r.next = wholeSecond(r.clock.Now())
	timer := r.clock.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			r.writeUpTo(wholeSecond(r.clock.Now()).Add(-time.Second))
			timer.Reset(wholeSecond(r.clock.Now()).Add(time.Second).Sub(r.clock.Now()))
		case <-ctx.Done():
			r.writeUpTo(r.clock.Now().Add(1))
			if err := r.writer.close(); err != nil {
				r.failed(err)
			}
			return nil
		}
	}
}

type run struct {
	engine *core.Engine
	clock  clock.Clock
	writer writer
	log    *slog.Logger
	next   clock.Instant // the second to be written next
	tidied file          // after which there are no more files than there may be

	isFailing bool
	lost      int // seconds since it is
}

// writeUpTo writes all seconds that began before an instant.
func (r *run) writeUpTo(end clock.Instant) {
	if oldest := wholeSecond(r.clock.Now().Add(-kept)); r.next < oldest {
		r.lost += int(oldest.Sub(r.next) / time.Second)
		r.next = oldest
	}
	for ; r.next < end; r.next = r.next.Add(time.Second) {
		seconds := r.engine.Second(r.next)
		lines := make([]Line, len(seconds))
		for i := range seconds {
			lines[i] = lineOf(&seconds[i])
		}
		if len(lines) == 0 {
			continue
		}
		if err := r.writer.write(r.next.Time(), lines); err != nil {
			r.failed(err)
			return
		}
		if err := r.removeOldest(); err != nil {
			r.failed(err)
			continue // the second was written
		}
		r.works()
	}
}

// removeOldest removes the oldest files after another one was begun.
func (r *run) removeOldest() error {
	if r.writer.file == r.tidied {
		return nil
	}
	o := &r.writer.options
	if err := removeOldest(o.Dir, o.App, o.MaxFiles); err != nil {
		return err
	}
	r.tidied = r.writer.file
	return nil
}

// failed logs the first of several faults.
func (r *run) failed(err error) {
	if !r.isFailing {
		r.isFailing, r.lost = true, 0
		r.log.Error("penstock: the metric log has a fault, it is tried again each second",
			slog.String("dir", r.writer.options.Dir), slog.Any("error", err))
	}
}

func (r *run) works() {
	if r.isFailing {
		r.log.Info("penstock: the metric log is written again", slog.String("dir", r.writer.options.Dir), slog.Int("lostSeconds", r.lost))
	}
	r.isFailing, r.lost = false, 0
}

// wholeSecond returns the beginning of the second that has the instant.
func wholeSecond(at clock.Instant) clock.Instant { return at - at%clock.Instant(time.Second) }
