package core_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestTheFirstNameBeyondTheBoundIsLoggedOnce(t *testing.T) {
	var text bytes.Buffer // the handler locks
	byValue := toyKind(rule.PhaseValue, rule.RateLimited)
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: slog.New(slog.NewTextHandler(&text, nil)),
		MaxResources: 3, Kinds: []rule.Definition{byValue},
	})
	defer e.Close()
	for _, name := range []string{"a", "b", "c", rule.OtherResources, strings.Repeat("x", rule.MaxNameLength+1)} {
		enter(e, name, 1)
	}
	e.Explain("user:0")
	assert.Empty(t, text.String(), "there was space for all names that can have any")

	var calls sync.WaitGroup
	for _, name := range []string{"user:1", "user:1", "user:1", "user:1"} {
		calls.Go(func() {
			for range 100 {
				enter(e, name, 1)
			}
		})
	}
	calls.Wait()
	enter(e, "user:2", 1)
	assert.Equal(t, 1, strings.Count(text.String(), "\n"), text.String())
	for _, part := range []string{
		"level=WARN", "more resource names than MaxResources", "say who calls by an attribute", "raise MaxResources",
		"maxResources=3", "resource=user:1", `kindsByValue="[hotParam toy]"`,
	} {
		assert.Contains(t, text.String(), part)
	}
}
