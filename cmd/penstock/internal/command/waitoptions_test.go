package command

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func TestTimeoutNamesMissingInstances(t *testing.T) {
	a, b, old := etcd.Report{Instance: "a", Revision: 7}, etcd.Report{Instance: "b", Revision: 8}, etcd.Report{Instance: "old", Revision: 6}
	for name, test := range map[string]struct {
		least int
		seen  []etcd.Report
		last  []etcd.Report
		want  string
	}{
		"some are behind": {2, nil, []etcd.Report{a, old}, "not every instance came to revision 7 in 30s: old (at 6)"},
		"some never came": {
			4, nil,
			[]etcd.Report{a, b, old},
			"only 2 of at least 4 instances came to revision 7 in 30s; at it: a, b; behind: old (at 6); never reported: 1",
		},
		"some have stopped": {
			3,
			[]etcd.Report{old, b},
			[]etcd.Report{a},
			"only 1 of at least 3 instances came to revision 7 in 30s; at it: a; stopped meanwhile: b, old",
		},
		"nobody came": {1, nil, nil, "only 0 of at least 1 instance came to revision 7 in 30s; at it: none; never reported: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var notes bytes.Buffer
			w := waiter{
				env: Env{Err: &notes}, revision: 7, seen: make(map[string]bool),
				waitOptions: waitOptions{timeout: 30 * time.Second, minInstances: test.least, minSet: true},
			}
			w.showBehind(test.seen)
			require.False(t, w.done(reportsOf(test.last...)))
			require.EqualError(t, w.timeoutError(reportsOf(test.last...)), test.want)
			assert.NotEmpty(t, notes.String())
		})
	}
}

func TestWaitEndsWithEnoughInstancesAndNoneBehind(t *testing.T) {
	w := waiter{env: Env{Err: &bytes.Buffer{}}, revision: 7, seen: make(map[string]bool), waitOptions: waitOptions{minInstances: 1, minSet: true}}
	assert.False(t, w.done(reportsOf()))
	assert.False(t, w.done(reportsOf(etcd.Report{Instance: "a", Revision: 7}, etcd.Report{Instance: "b", Revision: 6})))
	assert.True(t, w.done(reportsOf(etcd.Report{Instance: "a", Revision: 7}, etcd.Report{Instance: "b", Revision: 7})))
}

func TestInstanceWithOtherDocumentsIsWaitedFor(t *testing.T) {
	w := waiter{env: Env{Err: &bytes.Buffer{}}, revision: 7, seen: make(map[string]bool), waitOptions: waitOptions{timeout: time.Second}}
	other := reportsOf(
		etcd.Report{Instance: "a", Revision: 9, Digest: etcd.DigestOf([]etcd.DocumentRevision{{Name: "c", Revision: 8}})},
		etcd.Report{Instance: "b", Revision: 8, CopiedAt: time.Unix(1, 0)})
	assert.False(t, w.done(other))
	require.EqualError(t, w.timeoutError(other), "not every instance came to revision 7 in 1s: a (at 9, with other documents), b (on a copy)")
}

// Of an instance that reports no longer and was behind, nobody knows whether it ended or hangs.
func TestWaitTellsWhoReportsNoLonger(t *testing.T) {
	var notes bytes.Buffer
	w := waiter{env: Env{Err: &notes}, revision: 7, seen: make(map[string]bool)}
	behind := etcd.Report{Instance: "behind", Revision: 6}
	w.showBehind([]etcd.Report{behind, {Instance: "comes", Revision: 5}})
	there := etcd.Report{Instance: "there", Revision: 7}
	require.False(t, w.done(reportsOf(behind, there, etcd.Report{Instance: "comes", Revision: 7})))
	w.showBehind([]etcd.Report{behind})
	found := reportsOf(there)
	require.True(t, w.done(found))
	notes.Reset()
	strict := w
	strict.seen, strict.strict = maps.Clone(w.seen), true
	require.NoError(t, w.tellStopped(found.Instances))
	const silent = "behind reported no longer before coming to revision 7: ended, or hanging with what there was before"
	assert.Equal(t, "stopped meanwhile: comes\npenstock: warning: "+silent+"\n", notes.String())
	err := strict.tellStopped(found.Instances)
	require.EqualError(t, err, silent+", and --strict is given")
	require.ErrorAs(t, err, new(failure))
}

// reportsOf returns what instances report while there are no documents in etcd.
func reportsOf(instances ...etcd.Report) store.Deployment {
	return store.Deployment{Digest: etcd.DigestOf(nil), Reports: store.Reports{Instances: instances}}
}
