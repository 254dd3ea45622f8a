package core

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// keepRunning runs fn in a goroutine of the engine, and anew when code of the program that it calls has panicked or
// has ended the goroutine. Close waits for it.
func (e *Engine) keepRunning(fn func()) { e.running.Keep(fn, e.logPanic) }

// logPanic logs that code of the program has panicked in a goroutine of the engine. The log is such code, too.
func (e *Engine) logPanic(value any) {
	defer func() { _ = recover() }()
	e.log.Error("penstock: an observer or the log panicked, the engine goes on",
		slog.String("error", fmt.Sprint(value)), slog.String("stack", string(debug.Stack())))
}
