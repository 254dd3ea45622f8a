package core_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Clients that choose names would otherwise write a line for each.
func TestLinesOfRefusalsAreBoundedOverAllResources(t *testing.T) {
	for name, names := range map[string]int{"with resources of their own": 0, "in the overflow": 50} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			c := clock.NewVirtual(begin)
			e := core.New(core.Config{Clock: c, MaxResources: names, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			defer e.Close()
			load(t, e, flow.Rule{Match: "*", Limit: 0})
			for second := range 3 {
				log.Reset()
				for i := range 2000 {
					enter(e, fmt.Sprintf("name-%d-%d", second, i), 1)
				}
				enter(e, strings.Repeat("x", 2000), 100)
				lines := logLines(t, &log, "penstock: call refused")
				require.NotEmpty(t, lines)
				require.LessOrEqual(t, len(lines), 10)
				if names == 0 { // those in the overflow share the line of each second
					assert.Len(t, lines, 10)
					assert.Equal(t, second > 0, lines[0]["linesSkipped"] != nil)
				}
				c.Advance(time.Second)
			}
		})
	}
}

func TestLinesOfStatesAreBoundedOverAllResources(t *testing.T) {
	var log bytes.Buffer
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Breaker: []breaker.Rule{{Match: "*", Threshold: 0.5, MinCalls: 1}}}))
	for i := range 500 {
		g, err := e.Entry(t.Context(), fmt.Sprint("name-", i))
		require.NoError(t, err)
		g.Fail(assert.AnError)
		g.Exit()
	}
	assert.Len(t, logLines(t, &log, "penstock: the state of a rule changed"), 100)
}

func TestNamesAreLoggedCut(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 1<<17), strings.Repeat("日本", 1<<15), "\xff" + strings.Repeat("\x80", 1<<17)} {
		var log bytes.Buffer
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), MaxResources: 1, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		defer e.Close()
		load(t, e, flow.Rule{Match: "**", Limit: 0})
		enter(e, "first", 1)
		enter(e, "second", 1)
		enter(e, name, 3)
		require.Contains(t, log.String(), "call refused")
		assert.Less(t, log.Len(), 8<<10)
		assert.True(t, utf8.Valid(log.Bytes()))
	}
}
