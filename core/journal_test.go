package core_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// logLines returns the lines of a log in JSON whose message begins so.
func logLines(t *testing.T, log *bytes.Buffer, message string) (lines []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(log.Bytes()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		if found, _ := fields["msg"].(string); len(found) >= len(message) && found[:len(message)] == message {
			delete(fields, "time")
			lines = append(lines, fields)
		}
	}
	return lines
}

// logging returns an engine that logs JSON and follows a source.
func logging(t *testing.T, source *memory) (*core.Engine, *clock.Virtual, *bytes.Buffer) {
	t.Helper()
	c, log := clock.NewVirtual(begin), new(bytes.Buffer)
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	t.Cleanup(e.Close)
	require.NoError(t, e.Follow(t.Context(), source))
	return e, c, log
}

const (
	swapped  = "penstock: rules swapped"
	rejected = "penstock: rule document rejected"
)

func TestSwapIsLoggedWithSourceDocumentsAndTheirRevisions(t *testing.T) {
	source := newMemory("memory")
	e, c, log := logging(t, source)
	source.put(complete(doc("a", 1, text("a", 1)), doc("b", 2, text("b", 2)), doc("c", 0, text("c", 3))))
	c.Advance(time.Second)
	source.put(core.Change{Removed: []string{"c"}, Documents: []core.Document{doc("a", 4, text("a", 4)), doc("b", 5, text("b", 2))}})
	c.Advance(time.Second)
	load(t, e, flow.Rule{Resource: "code", Limit: 1})
	level := "INFO"
	assert.Equal(t, []map[string]any{
		{
			"level": level, "msg": swapped, "revision": 1.0, "source": "memory", "documents": []any{"a@1", "b@2", "c"},
			"rules": 3.0, "added": 3.0, "changed": 0.0, "removed": 0.0, "took": "0s",
		},
		{
			"level": level, "msg": swapped, "revision": 2.0, "source": "memory", "documents": []any{"a@4", "c removed"},
			"rules": 2.0, "added": 0.0, "changed": 1.0, "removed": 1.0, "took": "0s",
		},
		{
			"level": level, "msg": swapped, "revision": 3.0, "source": "code",
			"rules": 3.0, "added": 1.0, "changed": 0.0, "removed": 0.0, "took": "0s",
		},
	}, logLines(t, log, swapped))
}

func TestSwapsAreLoggedOnceASecondWithWhatWasLeftOut(t *testing.T) {
	source := newMemory("memory")
	e, c, log := logging(t, source)
	for i := range 140 {
		source.put(core.Change{Documents: []core.Document{doc(fmt.Sprintf("d%03d", i), int64(i), fmt.Sprintf("flow: [{resource: r%d, limit: 1}]", i))}})
		c.Advance(5 * time.Millisecond)
	}
	require.Len(t, logLines(t, log, swapped), 1)
	c.Advance(300 * time.Millisecond)
	e.Status() // whatever comes next
	lines := logLines(t, log, swapped)
	require.Len(t, lines, 2)
	assert.InDelta(t, 140, lines[1]["revision"], 0)
	assert.InDelta(t, 139, lines[1]["swaps"], 0)
	assert.InDelta(t, 139, lines[1]["added"], 0)
	assert.InDelta(t, 129, lines[1]["moreDocuments"], 0)
	assert.Len(t, lines[1]["documents"], 10)
	assert.Less(t, log.Len(), 2000)
}

func TestLastSwapAndRejectionAreLoggedThoughNothingElseHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory("memory")
		_, c, log := logging(t, source)
		for second := range 3 {
			source.put(complete(doc("a", 1, text("abcd", 1)), doc("b", 1, "flow: [")))
			source.put(complete(doc("a", 2, text("a", 1)), doc("b", 2, "flow: [[")))
			require.Len(t, logLines(t, log, swapped), 2*second+1)
			require.Len(t, logLines(t, log, rejected), 2*second+1)
			synctest.Wait()
			c.Advance(time.Second)
			synctest.Wait()
			lines := logLines(t, log, swapped)
			require.Len(t, lines, 2*second+2)
			assert.Equal(t, "WARN", lines[2*second+1]["level"], "many rules were removed")
			lines = logLines(t, log, rejected)
			require.Len(t, lines, 2*second+2)
			assert.InDelta(t, 2, lines[2*second+1]["revision"], 0)
			assert.Zero(t, c.Timers(), "nothing is left to log")
			c.Advance(time.Second)
		}
	})
}

func TestWhatIsNotLoggedYetIsLoggedWhenTheEngineIsClosed(t *testing.T) {
	source := newMemory("memory")
	e, _, log := logging(t, source)
	for i := range 3 {
		load(t, e, flow.Rule{Resource: "r", Limit: float64(i + 1)})
		source.put(core.Change{Documents: []core.Document{doc("a", int64(i), "flow: [broken"+fmt.Sprint(i))}})
	}
	e.Close()
	lines := logLines(t, log, swapped)
	require.Len(t, lines, 2)
	assert.InDelta(t, 3, lines[1]["revision"], 0)
	lines = logLines(t, log, rejected)
	require.Len(t, lines, 2)
	assert.InDelta(t, 2, lines[1]["revision"], 0)
	assert.InDelta(t, 1, lines[1]["skipped"], 0)
	e.Close()
	assert.Len(t, logLines(t, log, swapped), 2)
}

func TestRemovalOfManyRulesIsAWarning(t *testing.T) {
	for _, test := range []struct {
		had, removed int
		warns        bool
	}{{1, 1, true}, {4, 2, true}, {5, 2, false}, {300, 99, false}, {300, 100, true}} {
		source := newMemory("memory")
		_, c, log := logging(t, source)
		change := core.Change{Complete: true}
		var removed []string
		for i := range test.had {
			name := fmt.Sprintf("d%03d", i)
			change.Documents = append(change.Documents, doc(name, 1, fmt.Sprintf("flow: [{resource: r%d, limit: 1}]", i)))
			if i < test.removed {
				removed = append(removed, name)
			}
		}
		source.put(change)
		c.Advance(time.Second)
		source.put(core.Change{Removed: removed})
		lines := logLines(t, log, swapped)
		require.Len(t, lines, 2)
		assert.Equal(t, test.warns, lines[1]["level"] == "WARN", "%d of %d", test.removed, test.had)
	}
}

func TestBrokenDocumentIsLoggedOnceASecond(t *testing.T) {
	source := newMemory("memory")
	var seen int
	c, log := clock.NewVirtual(begin), new(bytes.Buffer)
	e := core.New(core.Config{
		Clock: c, Logger: slog.New(slog.NewJSONHandler(log, nil)),
		Observer: core.Observer{Rejected: func(core.Rejection) { seen++ }},
	})
	defer e.Close()
	require.NoError(t, e.Follow(t.Context(), source))
	for i := range 300 {
		source.put(core.Change{Documents: []core.Document{
			doc("a", int64(i+1), fmt.Sprintf("flow: [broken %d", i)), doc("b", int64(i+1), fmt.Sprintf("flew: %d", i)),
		}})
		c.Advance(10 * time.Millisecond)
	}
	assert.Equal(t, 600, seen, "the observer is told of each")
	lines := logLines(t, log, rejected)
	require.Len(t, lines, 6, "two documents, three seconds")
	e.Status()
	lines = logLines(t, log, rejected)
	require.Len(t, lines, 8, "the last state too")
	skipped := 0.0
	for _, line := range lines {
		more, _ := line["skipped"].(float64)
		skipped += more
	}
	assert.InDelta(t, 600-8, skipped, 0)
	for _, line := range lines[6:] {
		assert.InDelta(t, 300, line["revision"], 0)
	}
}

func TestRejectionThatIsOverIsNotLoggedLater(t *testing.T) {
	source := newMemory("memory")
	e, c, log := logging(t, source)
	source.put(core.Change{Documents: []core.Document{doc("a", 1, "flow: [")}})
	source.put(core.Change{Documents: []core.Document{doc("a", 2, "flow: [[")}})
	source.put(core.Change{Documents: []core.Document{doc("a", 3, text("a", 3))}})
	c.Advance(time.Second)
	e.Status()
	assert.Len(t, logLines(t, log, rejected), 1)
}

func TestStandingCauseOfALossIsLogged(t *testing.T) {
	source := newMemory("memory")
	_, c, log := logging(t, source)
	for range 3 {
		source.lose(errors.New("EOF"))
		c.Advance(2 * time.Second)
	}
	for i := range 30 {
		source.lose(errors.New("permission denied"))
		source.lose(fmt.Errorf("attempt %d", i))
		c.Advance(100 * time.Millisecond)
	}
	assert.Len(t, logLines(t, log, "penstock: source lost"), 1)
	lines := logLines(t, log, "penstock: source still lost")
	require.Len(t, lines, 3)
	assert.Equal(t, "permission denied", lines[0]["error"])
}

func TestDurationsInLogsHaveUnits(t *testing.T) {
	source := newMemory("memory")
	e, c, log := logging(t, source)
	load(t, e, flow.Rule{Resource: "r", Limit: 1, Window: time.Minute})
	enter(e, "r", 2)
	copied := complete()
	copied.CopiedAt = c.Now().Add(-time.Hour)
	source.put(copied)
	assert.Equal(t, "0s", logLines(t, log, swapped)[0]["took"])
	retryAfter, _ := logLines(t, log, "penstock: call refused")[0]["retryAfter"].(string)
	_, err := time.ParseDuration(retryAfter)
	require.NoError(t, err)
	assert.Equal(t, "1h0m0s", logLines(t, log, "penstock: the source cannot be read")[0]["age"])
}
