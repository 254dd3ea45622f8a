package sourcetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func storeThatStartsLaterIsRead(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.store.Stop()
	r := f.follow()
	r.AwaitDisconnected(f.t)
	f.put("b.yaml", limited("b", 1))
	assert.Empty(f.t, r.Changes(), "nothing is delivered before the first read")
	f.store.Start()
	f.await(r)
	assert.True(f.t, r.Changes()[0].Complete)
	assert.Len(f.t, r.Changes()[0].Documents, 2)
}

func documentsStayWhileUnreachable(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.put("b.yaml", limited("b", 1))
	r := f.follow()
	f.await(r)
	changes := len(r.Changes())
	f.store.Stop()
	r.AwaitDisconnected(f.t)
	f.awaitAttempts(r, 3)
	assert.Len(f.t, r.Changes(), changes, "a store that cannot be read changes no document")
	assert.Equal(f.t, f.want, r.Documents())
	f.store.Start()
	f.await(r)
	assert.Equal(f.t, f.want, r.Documents())
}

func changesMadeWhileUnreachableArrive(f *fixture) {
	for i := range 3 {
		f.put(fmt.Sprintf("changed-%d.yaml", i), limited("a", 1))
		f.put(fmt.Sprintf("removed-%d.yaml", i), limited("b", 1))
		f.put("stays.yaml", limited("c", 1))
	}
	r := f.follow()
	f.await(r)
	for i := range 3 {
		f.store.Stop()
		r.AwaitDisconnected(f.t)
		f.put(fmt.Sprintf("changed-%d.yaml", i), limited("a", 2))
		f.remove(fmt.Sprintf("removed-%d.yaml", i))
		f.put(fmt.Sprintf("added-%d.yaml", i), limited("d", 1))
		f.store.Start()
		f.await(r)
		f.put("stays.yaml", limited("c", i+2))
		f.await(r)
	}
}

func removalOfAllWhileUnreachableArrives(f *fixture) {
	f.putAll(documents(5, 1))
	r := f.follow()
	f.await(r)
	f.store.Stop()
	r.AwaitDisconnected(f.t)
	for name := range documents(5, 1) {
		f.remove(name)
	}
	f.store.Start()
	f.await(r)
}

// noUpdateIsLostUnderCuts writes, removes and cuts at random. The source may skip
// versions, but after each storm it has what the store has, and it never goes back to an
// earlier version.
func noUpdateIsLostUnderCuts(f *fixture) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // the same steps in each run
	written := map[string][]string{}
	r := f.follow()
	f.await(r)
	for storm := range 8 {
		stopped := false
		for step := range 40 {
			name := fmt.Sprintf("document-%d.yaml", random.IntN(4))
			_, present := f.want[name]
			switch n := random.IntN(10); {
			case n == 0 && !stopped:
				f.store.Stop()
				stopped = true
			case n <= 1 && stopped:
				f.store.Start()
				stopped = false
			case n == 2 && present:
				f.remove(name)
			default:
				content := limited("r", 100*storm+step)
				f.put(name, content)
				written[name] = append(written[name], content)
			}
		}
		if stopped {
			f.store.Start()
		}
		f.await(r)
	}
	for name := range written {
		requireSubsequence(f.t, r.History(name), written[name])
	}
}

// cutReadIsNotDelivered cuts the connection within the first read, at different places.
func cutReadIsNotDelivered(f *fixture) {
	cutter, ok := f.store.(Cutter)
	require.True(f.t, ok, "the store is no Cutter: implement it, or say in Harness.Lacks why not")
	f.putAll(documents(40, 1))
	for _, bytes := range []int{1, 100, 300, 700, 1500, 2500} {
		cutter.CutAfter(bytes)
		r, stop := f.followUntil(f.open())
		f.await(r)
		first := r.Changes()[0]
		assert.True(f.t, first.Complete)
		assert.Len(f.t, first.Documents, len(f.want), "cut after %d bytes", bytes)
		for _, d := range first.Documents {
			assert.Equal(f.t, f.want[d.Name], string(d.Data), "cut after %d bytes", bytes)
		}
		stop()
	}
}

// documentsOfAReplacedStoreAreRead replaces the store by one that has fewer revisions,
// as after a restore from a backup.
func documentsOfAReplacedStoreAreRead(f *fixture) {
	replacer, ok := f.store.(Replacer)
	require.True(f.t, ok, "the store is no Replacer: implement it, or say in Harness.Lacks why not")
	for i := range 20 {
		f.put("a.yaml", limited("a", i))
		f.put("gone.yaml", limited("b", i))
	}
	r := f.follow()
	f.await(r)

	for i := range 2 {
		f.store.Stop()
		r.AwaitDisconnected(f.t)
		replacer.Replace()
		clear(f.want)
		f.put("a.yaml", limited("a", 100+i))
		f.put("new.yaml", limited("c", i))
		f.store.Start()
		f.await(r)
		f.put("a.yaml", limited("a", 200+i))
		f.await(r)
	}
}

// failedAttemptsPause checks that a source does not try without pauses. A slow machine
// makes the pauses longer, never shorter.
func failedAttemptsPause(f *fixture) {
	const attempts, perSecond = 12, 200
	f.put("a.yaml", limited("a", 1))
	r := f.follow()
	f.await(r)
	f.store.Stop()
	r.AwaitDisconnected(f.t)
	requirePauses(f, r, attempts, perSecond)
	f.store.Start()
	f.await(r)
}

func requirePauses(f *fixture, r *Recorder, attempts, perSecond int) {
	f.t.Helper()
	before, began := f.attempts(r), time.Now()
	f.awaitAttempts(r, attempts)
	made, took := f.attempts(r)-before, time.Since(began)
	assert.LessOrEqual(f.t, float64(made)-1, took.Seconds()*float64(perSecond),
		"%d attempts in %v: at most %d a second are allowed", made, took, perSecond)
}

// attempts returns how often the source has tried to reach the store.
func (f *fixture) attempts(r *Recorder) int {
	if counter, ok := f.store.(Counter); ok {
		return counter.Attempts()
	}
	return len(r.Errors())
}

// awaitAttempts waits until the source has tried n times more to reach the store.
func (f *fixture) awaitAttempts(r *Recorder, n int) {
	f.t.Helper()
	before := f.attempts(r)
	require.Eventually(f.t, func() bool { return f.attempts(r) >= before+n }, f.harness.Patience, time.Millisecond,
		"the source does not try again, or its store has to be a Counter")
}
