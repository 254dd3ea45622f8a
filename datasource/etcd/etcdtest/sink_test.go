package etcdtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// eventTimeout is how long a test waits for an expected event.
const eventTimeout = 2 * time.Minute

// follow runs the source until the test ends.
func follow(t *testing.T, source core.Source) *sourcetest.Recorder {
	t.Helper()
	return sourcetest.Follow(t, source)
}

// inOrder fails if a change is older than the one before it, or changes nothing. It
// is for tests whose cluster is never restored.
func inOrder(t require.TestingT, s *sourcetest.Recorder) {
	var revision int64
	versions := map[string]int64{}
	for _, change := range s.Changes() {
		if change.Complete {
			require.GreaterOrEqual(t, change.Revision, revision)
		} else {
			require.Greater(t, change.Revision, revision)
		}
		for _, d := range change.Documents {
			require.LessOrEqual(t, d.Revision, change.Revision)
			require.GreaterOrEqual(t, d.Revision, versions[d.Name], "document %q", d.Name)
			require.True(t, change.Complete || d.Revision > revision, "document %q is no news", d.Name)
			versions[d.Name] = d.Revision
		}
		revision = change.Revision
	}
}
