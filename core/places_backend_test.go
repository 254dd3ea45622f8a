package core_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rules"
)

// countless is a backend that knows the instances, and does not count, as etcd.
type countless struct{}

func (countless) Announce(_ context.Context, self fleet.Instance, _ bool) (fleet.Fleet, error) {
	return fleet.Fleet{Count: 1, Instances: []fleet.Instance{self}}, nil
}

func (countless) Leave(context.Context, string) error { return nil }

func (countless) Close() error { return nil }

// A limit on calls under way in the whole fleet is refused at once where the backend does not count, and
// what was in force stays.
func TestPlacesAreRefusedWhenTheBackendDoesNotCount(t *testing.T) {
	t.Parallel()
	engine := core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: countless{}}})
	t.Cleanup(engine.Close)
	load := func(document string) error {
		set, err := rules.Parse("", []byte(document))
		require.NoError(t, err)
		return engine.Load(set)
	}
	require.NoError(t, load("isolation: [{name: local, resource: r, limit: 1}]"))
	const shared = "flow: [{resource: r, limit: 10, scope: fleet, fleet: {mode: share}}]"
	for name, document := range map[string]string{
		`isolation "jobs"`:   "isolation: [{name: jobs, resource: r, limit: 1, scope: fleet}]",
		`hotParam "exports"`: "hotParam: [{name: exports, resource: r, param: user, concurrency: 1, scope: fleet}]",
	} {
		err := load(document + "\n" + shared)
		require.ErrorIs(t, err, fleet.ErrUnsupported)
		assert.ErrorContains(t, err, name)
		assert.ErrorContains(t, err, "use Redis or Valkey, or remove scope")
		require.Len(t, engine.Explain("r"), 1)
		assert.Equal(t, "local", engine.Explain("r")[0].Name)
	}
	require.NoError(t, load(shared))
	require.NoError(t, load("hotParam: [{resource: r, param: user, concurrency: 1}]"))
}

// A document of a source with such a rule is rejected with the reason.
func TestADocumentWithPlacesIsRejectedWhenTheBackendDoesNotCount(t *testing.T) {
	t.Parallel()
	engine := core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: countless{}}})
	t.Cleanup(engine.Close)
	source := &heldSource{make(chan core.Sink)}
	require.NoError(t, engine.Follow(t.Context(), source))
	sink := <-source.sink
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{{
		Name: "a", Revision: 1, Data: []byte("isolation: [{name: jobs, resource: r, limit: 1, scope: fleet}]"),
	}}})
	document, ok := sink.Document("a")
	require.True(t, ok)
	require.ErrorIs(t, document.Rejected, fleet.ErrUnsupported)
	assert.Empty(t, engine.Explain("r"))
}
