package core_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Whichever of two owners loads first: the one whose rule waits is named, once.
func TestRuleOfAnotherOwnerThatWaitsIsReported(t *testing.T) {
	set := func(resource string) rules.Set {
		return rules.Set{Flow: []flow.Rule{{Resource: "free", Name: resource + "-free", Limit: 1}, {Name: "pay", Resource: resource, Limit: 1}}}
	}
	for _, order := range [][]string{{"billing", "orders"}, {"orders", "billing"}} {
		var log bytes.Buffer
		var rejected []core.Rejection
		e := core.New(core.Config{
			Clock:    clock.NewVirtual(time.Unix(0, 0)),
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Observer: core.Observer{Rejected: func(r core.Rejection) { rejected = append(rejected, r) }},
		})
		for _, owner := range order {
			require.NoError(t, e.LoadAs(owner, set(owner)))
			require.NoError(t, e.LoadAs(owner, set(owner)), "the same again")
		}
		require.Len(t, rejected, 1)
		assert.Equal(t, "code", rejected[0].Source)
		assert.Equal(t, "orders", rejected[0].Document)
		require.EqualError(t, rejected[0].Err, `rules: flow[1] "pay": name is taken by flow[1], made in code by "billing", `+
			`which comes first: this one by "orders" waits until that is gone: give one of them another (the default is the resource)`)

		require.NoError(t, e.LoadAs("billing", rules.Set{}))
		require.NoError(t, e.LoadAs("orders", set("orders")))
		assert.Len(t, rejected, 1, "all rules of the owner are in force")
		e.Close()
		assert.Contains(t, log.String(), `level=ERROR msg="penstock: rules from code wait, other owners have their names" source=code document=orders`)
	}
}
