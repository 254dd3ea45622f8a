package lists

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/internal/sourcepanic"
)

// The pauses before a source that has panicked is started again, as in an engine.
const (
	minRestart = time.Second
	maxRestart = time.Minute
)

// errEndedGoroutine is the error of code of the program that did not return.
var errEndedGoroutine = errors.New("lists: the source has ended its goroutine")

// follow runs the source until it returns, or until ctx ends. When it panics the lists stay, and it is
// started again after a pause that doubles each time.
func (w *Watch) follow(ctx context.Context) {
	err := errEndedGoroutine // unless it returns
	defer func() {
		if ctx.Err() == nil {
			w.disconnected(err)
		}
	}()
	pause := retry.Backoff{Min: minRestart, Max: maxRestart}
	for {
		var panicked *sourcepanic.Error
		if returned := w.run(ctx); !errors.As(returned, &panicked) {
			err = returned
			return
		}
		w.disconnected(panicked)
		if !retry.Sleep(ctx, w.config.Clock, pause.Next()) {
			return
		}
	}
}

// run runs the source, and returns a panic as an error.
func (w *Watch) run(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = w.panicked(value)
		}
	}()
	if err := w.config.Source.Run(ctx, sink{w}); err != nil {
		return fmt.Errorf("lists: the source has ended: %w", err)
	}
	return errors.New("lists: the source has ended")
}

// panicked returns the error that code of the source has panicked, which it logs.
func (w *Watch) panicked(value any) error {
	err := &sourcepanic.Error{Source: w.config.Source.Name(), Value: value, Stack: debug.Stack()}
	w.config.Logger.Error("penstock: source of lists panicked, its lists stay, it is tried again",
		slog.String("source", err.Source), slog.Any("error", err), slog.String("stack", string(err.Stack)))
	return err
}
