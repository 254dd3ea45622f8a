package etcdtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// Two documents have a rule of the same name. An engine that received them one by
// one and an engine that starts later enforce the same one: that of the document
// that was created first, although it was edited last.
func TestInstancesAgreeOnConflictingRuleNames(t *testing.T) {
	server := start(t, etcdtest.Options{})
	limit := func(e *core.Engine) (limit float64) {
		for _, of := range e.Explain("r") {
			limit = of.Quota.Limit
		}
		return limit
	}
	following := func() *core.Engine {
		e := core.New(core.Config{})
		t.Cleanup(e.Close)
		require.NoError(t, e.Follow(t.Context(), newSource(t, server.Endpoint(), shortBackoff())))
		require.NoError(t, e.Ready(t.Context()))
		return e
	}
	put(t, server, "b", "flow: [{resource: r, limit: 1}]")
	early := following()
	put(t, server, "a", "flow: [{resource: r, limit: 2}]")
	put(t, server, "b", "flow: [{resource: r, limit: 3}]")
	require.Eventually(t, func() bool { return limit(early) == 3 }, eventTimeout, time.Millisecond)
	late := following()
	assert.InDelta(t, 3, limit(late), 0)
	for _, e := range []*core.Engine{early, late} {
		documents := e.Status().Sources[0].Documents
		require.Len(t, documents, 2)
		assert.ErrorContains(t, documents[0].Rejected, "name is taken by the rule at b:1:8")
		assert.NoError(t, documents[1].Rejected)
	}
}
