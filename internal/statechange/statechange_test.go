package statechange_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/statechange"
)

func TestChangesAreReportedInOrderWithoutTheMutex(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var q statechange.Queue
	var reports []string
	report := func(at clock.Instant, from, to, _ string) {
		reports = append(reports, fmt.Sprint(at, from, to))
		mu.Lock() // it may ask the limiter
		if at == 1 {
			q.Add(func(clock.Instant, string, string, string) { reports = append(reports, "later") }, 3, "", "", "")
		}
		q.Unlock(&mu)
	}
	mu.Lock()
	q.Add(report, 1, "a", "b", "")
	q.Add(report, 2, "b", "c", "")
	q.Unlock(&mu)
	assert.Equal(t, []string{"1ab", "2bc", "later"}, reports)
}

func TestReportThatPanicsDoesNotStopLaterOnes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var q statechange.Queue
	mu.Lock()
	q.Add(func(clock.Instant, string, string, string) { panic("report") }, 1, "a", "b", "")
	require.Panics(t, func() { q.Unlock(&mu) })
	reported := false
	mu.Lock()
	q.Add(func(clock.Instant, string, string, string) { reported = true }, 2, "b", "c", "")
	q.Unlock(&mu)
	assert.True(t, reported)
}

// What another goroutine has added meanwhile is reported too.
func TestChangesBehindOneWhoseReportFailsAreReported(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){"panic": func() { panic("report") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var q statechange.Queue
			var reports []string
			report := func(_ clock.Instant, from, to, _ string) {
				reports = append(reports, from+to)
				fail()
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				mu.Lock()
				for _, change := range []string{"ab", "bc", "cd"} {
					q.Add(report, 1, change[:1], change[1:], "")
				}
				q.Unlock(&mu)
			}()
			<-done
			require.True(t, mu.TryLock())
			q.Unlock(&mu)
			assert.Equal(t, []string{"ab", "bc", "cd"}, reports)
		})
	}
}
