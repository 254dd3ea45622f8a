package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/snapshot"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/rules"
)

// script is what a store answers, one after the other. Then it says nothing more.
type script []any // map[string]string or error

func (s *script) next(ctx context.Context) (snapshot.Snapshot, error) {
	if len(*s) == 0 {
		<-ctx.Done()
		return snapshot.Snapshot{}, ctx.Err()
	}
	first := (*s)[0]
	*s = (*s)[1:]
	if err, failed := first.(error); failed {
		return snapshot.Snapshot{}, err
	}
	var state snapshot.Snapshot
	for name, text := range first.(map[string]string) {
		state.Documents = append(state.Documents, snapshot.Document("test", name, []byte(text)))
	}
	return state, nil
}

// play runs the script to its end in a bubble of virtual time.
func play(t *testing.T, opts snapshot.Options, answers ...any) (r *sourcetest.Recorder, took time.Duration) {
	t.Helper()
	r = &sourcetest.Recorder{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, began := script(answers), time.Now()
		next := func(ctx context.Context) (snapshot.Snapshot, error) {
			if len(s) == 0 {
				took = time.Since(began)
				cancel()
			}
			return s.next(ctx)
		}
		require.ErrorIs(t, snapshot.Run(ctx, r, opts, next), context.Canceled)
	})
	require.Empty(t, r.Violations())
	return r, took
}

func TestOnlyWhatIsNewIsDelivered(t *testing.T) {
	lost := errors.New("lost")
	r, _ := play(t, snapshot.Options{},
		map[string]string{"b": "1", "a": "1"},
		map[string]string{"b": "1", "a": "1"}, // nothing new
		map[string]string{"b": "2", "c": "1"},
		lost,
		map[string]string{"b": "2", "c": "1"}, // ends the failure
		map[string]string{},
	)
	changes := r.Changes()
	require.Len(t, changes, 4)
	assert.True(t, changes[0].Complete)
	assert.Equal(t, []core.Document{{Name: "a", Data: []byte("1")}, {Name: "b", Data: []byte("1")}}, changes[0].Documents)
	assert.Equal(t, core.Change{Documents: []core.Document{{Name: "b", Data: []byte("2")}, {Name: "c", Data: []byte("1")}}, Removed: []string{"a"}}, changes[1])
	assert.Equal(t, core.Change{}, changes[2])
	assert.Equal(t, core.Change{Removed: []string{"b", "c"}}, changes[3])
	assert.Equal(t, []error{lost}, r.Errors())
}

func TestNothingIsDeliveredBeforeTheFirstRead(t *testing.T) {
	r, _ := play(t, snapshot.Options{}, errors.New("down"), errors.New("refused"))
	assert.Empty(t, r.Changes())
	assert.Len(t, r.Errors(), 2)
}

func TestErrorsThatDifferInDigitsAreOneError(t *testing.T) {
	r, _ := play(t, snapshot.Options{}, errors.New("port 1"), errors.New("port 2"), errors.New("refused"))
	require.Len(t, r.Errors(), 3)
	assert.Equal(t, r.Errors()[0], r.Errors()[1])
	assert.EqualError(t, r.Errors()[2], "refused")
}

func TestPausesDoubleUpToTheirBound(t *testing.T) {
	opts := snapshot.Options{MinBackoff: time.Second, MaxBackoff: 8 * time.Second}
	_, took := play(t, opts, errors.New("a"), errors.New("b"), errors.New("c"), errors.New("d"), errors.New("e"))
	const limits = (1 + 2 + 4 + 8 + 8) * time.Second
	assert.LessOrEqual(t, took, limits)
	assert.GreaterOrEqual(t, took, limits/2)
}

func TestConnectionThatIsLostAtOnceDoesNotShortenPauses(t *testing.T) {
	opts := snapshot.Options{MinBackoff: time.Second, MaxBackoff: 8 * time.Second}
	var answers []any
	for i := range 4 {
		answers = append(answers, errors.New("lost"), map[string]string{"a": fmt.Sprint(i)})
	}
	_, took := play(t, opts, answers...)
	assert.GreaterOrEqual(t, took, (1+2+4+8)*time.Second/2)
}

func TestTooManyDocumentsAreNotDelivered(t *testing.T) {
	r, _ := play(t, snapshot.Options{MaxDocuments: 1}, map[string]string{"a": "1"}, map[string]string{"a": "2", "b": "1"}, map[string]string{"b": "2"})
	assert.Equal(t, map[string]string{"b": "2"}, r.Documents())
	require.Len(t, r.Errors(), 1)
	require.ErrorContains(t, r.Errors()[0], "more than Options.MaxDocuments allows, which is 1")
	assert.Len(t, r.Changes(), 2)
}

func TestTooLongDocumentHasAnError(t *testing.T) {
	assert.NoError(t, snapshot.Document("test", "a", make([]byte, rules.MaxDocumentSize)).Err)
	require.ErrorContains(t, snapshot.Document("test", "a", make([]byte, rules.MaxDocumentSize+1)).Err, `test: document "a" has 1048577 bytes`)
}

func TestDocumentWithALongNameHasAnErrorAndAShortName(t *testing.T) {
	name := strings.Repeat("ä", 512)
	assert.Equal(t, core.Document{Name: name, Data: []byte("x")}, snapshot.Document("test", name, []byte("x")))
	one, other := snapshot.Document("test", name+"1", nil), snapshot.Document("test", name+"2", nil)
	assert.Less(t, len(one.Name), 250)
	assert.NotEqual(t, one.Name, other.Name)
	assert.True(t, utf8.ValidString(one.Name))
	require.ErrorContains(t, one.Err, "has 1025 bytes, at most 1024 are read: shorten it")
	assert.Less(t, len(one.Err.Error()), 400)
}

func TestMistakesInOptionsAreReportedAtOnce(t *testing.T) {
	err := snapshot.Run(t.Context(), &sourcetest.Recorder{}, snapshot.Options{MaxDocuments: -1, MinBackoff: -1, MaxBackoff: -2}, nil)
	for _, text := range []string{"MaxDocuments is negative", "MinBackoff is negative", "MaxBackoff is negative"} {
		require.ErrorContains(t, err, text)
	}
}

// TestDeliveredDocumentsFollowTheStoreUnderRandomStates checks after each state that the
// sink has exactly what the store holds.
func TestDeliveredDocumentsFollowTheStoreUnderRandomStates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var answers []any
	last := map[string]string{}
	for range 500 {
		if random.IntN(5) == 0 {
			answers = append(answers, fmt.Errorf("failure %d", random.IntN(3)))
			continue
		}
		last = map[string]string{}
		for _, name := range []string{"a", "b", "c", "d"} {
			if n := random.IntN(4); n > 0 {
				last[name] = fmt.Sprint(n)
			}
		}
		answers = append(answers, last)
	}
	answers = append(answers, last)
	r := &sourcetest.Recorder{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := script(answers)
		var want map[string]string
		next := func(ctx context.Context) (snapshot.Snapshot, error) {
			if want != nil {
				assert.Equal(t, want, r.Documents())
			}
			if len(s) == 0 {
				cancel()
			} else if state, ok := s[0].(map[string]string); ok {
				want = state
			}
			return s.next(ctx)
		}
		require.ErrorIs(t, snapshot.Run(ctx, r, snapshot.Options{}, next), context.Canceled)
	})
	require.Empty(t, r.Violations())
}
