package journal_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/core/internal/ruleset"
)

// failingLog is a handler of the log that fails on lines about some documents.
type failingLog struct {
	slog.Handler
	fail func()
	told []string
}

func (l *failingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *failingLog) Handle(_ context.Context, record slog.Record) error {
	what := record.Message
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "document" {
			what = a.Value.String()
		}
		return true
	})
	l.told = append(l.told, what)
	if strings.HasPrefix(what, "bad") {
		l.fail()
	}
	return nil
}

func TestALogThatFailsOnOneLineGetsTheOthers(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){
		"panics":             func() { panic("the log is broken") },
		"ends the goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &failingLog{fail: fail}
			var j journal.Journal
			j.Init(slog.New(log))
			j.AddSwap(journal.Swap{Revision: 1, Rules: 1, Added: 1}, journal.CauseOf(ruleset.Origin{Source: "etcd"}))
			documents := []string{"bad", "bad too", "a", "b", "c"}
			for _, document := range documents {
				j.AddRejection(journal.Rejection{Source: "etcd", Document: document, Err: errors.New("no document")})
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				j.Flush(0, true)
			}()
			<-done
			assert.ElementsMatch(t, append(documents, "penstock: rules swapped"), log.told)
			assert.Equal(t, "penstock: rules swapped", log.told[0])
		})
	}
}

// Goroutines read the clock and flush in any order.
func TestALineIsNotLoggedAgainByAnEarlierInstant(t *testing.T) {
	t.Parallel()
	log := new(failingLog)
	var j journal.Journal
	j.Init(slog.New(log))
	second := clock.Instant(journal.Interval)
	for _, flush := range []struct {
		at    clock.Instant
		lines int
	}{
		{10 * second, 1},
		{10*second - 1, 1},
		{9*second + 1, 1},
		{11 * second, 2},
		{5 * second, 3}, // the clock went back
		{5*second + 1, 3},
	} {
		j.AddRejection(journal.Rejection{Source: "etcd", Document: "a", Err: errors.New("no document")})
		j.Flush(flush.at, false)
		assert.Len(t, log.told, flush.lines, "at %d", flush.at)
	}
}
