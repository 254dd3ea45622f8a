package core

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"
)

// How long the engine waits before it starts a source again that has panicked.
const (
	minRestart = 100 * time.Millisecond
	maxRestart = 5 * time.Second
)

// SourcePanicError says that a source has panicked. It is started again.
type SourcePanicError struct {
	Source string
	Value  any    // that it panicked with
	Stack  []byte // of its goroutine
}

// Error tells the value.
func (e *SourcePanicError) Error() string {
	return fmt.Sprintf("core: source %q panicked: %v", e.Source, e.Value)
}

// Unwrap returns the value if it is an error.
func (e *SourcePanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// run runs the source until it returns. When it panics it is started again, after a
// pause that doubles each time unless it has run for long.
func (f *followedSource) run(source Source) error {
	pause := minRestart
	for {
		begun := f.engine.clock.Now()
		err := f.runOnce(source)
		panicked := (*SourcePanicError)(nil)
		if !errors.As(err, &panicked) || panicked.Source != f.name {
			return err
		}
		f.reportPanic(panicked)
		now := f.engine.clock.Now()
		if now.Sub(begun) >= maxRestart {
			pause = minRestart
		}
		if err := f.engine.pause(f.ctx, now, pause, nil); err != nil {
			return err
		}
		pause = min(2*pause, maxRestart)
	}
}

// runOnce runs the source and returns a panic as a [*SourcePanicError].
func (f *followedSource) runOnce(source Source) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &SourcePanicError{Source: f.name, Value: value, Stack: debug.Stack()}
		}
	}()
	return source.Run(f.ctx, f)
}

func (f *followedSource) reportPanic(err *SourcePanicError) {
	f.engine.log.Error("penstock: source panicked, the rules in force stay, it is started again",
		slog.String("source", f.name), slog.Any("error", err), slog.String("stack", string(err.Stack)))
	f.Disconnected(err)
	if f.engine.observer.Rejected != nil {
		f.engine.observer.Rejected(Rejection{Source: f.name, Err: err})
	}
}

// isNil says whether a source is nil, or a nil pointer.
func isNil(source Source) bool {
	if source == nil {
		return true
	}
	v := reflect.ValueOf(source)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
