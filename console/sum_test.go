package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/inspect"
)

// minuteOf returns seconds of which each has as many calls as it is after the first.
func minuteOf(start int64) *inspect.Seconds {
	of := &inspect.Seconds{Start: time.Unix(start, 0)}
	for i := range uint64(60) {
		of.Passed = append(of.Passed, i)
	}
	return of
}

func TestSecondsAreAddedByTheCalendar(t *testing.T) {
	early, late := minuteOf(100), minuteOf(102)
	sum := newSeries(startOf([]time.Time{late.Start, early.Start}))
	assert.EqualValues(t, 100, sum.Start)
	sum.add(early)
	sum.add(late)
	assert.Equal(t, []uint64{0, 1, 2 + 0, 3 + 1, 4 + 2}, sum.Passed[:5])
	assert.EqualValues(t, 58+56, last(sum.Passed))
}

func TestClockThatIsFarBehindDoesNotMoveTheOthers(t *testing.T) {
	assert.EqualValues(t, 1000, startOf([]time.Time{time.Unix(1000, 0), time.Unix(100, 0), time.Unix(1001, 0)}))
}

func TestAnswersOfAnyLengthAreAdded(t *testing.T) {
	sum := newSeries(100)
	for _, of := range []*inspect.Seconds{nil, {Start: time.Unix(1<<40, 0), Passed: []uint64{1}}, {Start: time.Unix(100, 0), Passed: []uint64{1}, Waited: []uint64{9, 9, 9}}} {
		sum.add(of)
	}
	assert.EqualValues(t, 1, sum.Passed[0]+sum.Waited[0])
}

func TestLinesThatDifferAreShown(t *testing.T) {
	lines := diffLines([]string{"a", "b", "c", "d"}, []string{"a", "c", "x", "d"})
	assert.Equal(t, []diffLine{{" ", 1, "a"}, {"-", 0, "b"}, {" ", 2, "c"}, {"+", 3, "x"}, {" ", 4, "d"}}, lines)
}

func TestConsoleDialsOnlyItsNetworks(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Location", "http://192.0.2.1/")
		w.WriteHeader(http.StatusFound)
	}))
	defer server.Close()
	var into inspect.Status
	elsewhere := newRemoteClient([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, askTimeout)
	require.ErrorContains(t, fetch(t.Context(), elsewhere, server.URL, &into), "is not in the networks that the console may dial")
	assert.Zero(t, asked)

	here := newRemoteClient(DefaultDial(), askTimeout)
	require.ErrorContains(t, fetch(t.Context(), here, server.URL, &into), "302", "a redirect is not followed")
	assert.Equal(t, 1, asked)
	here.CloseIdleConnections()
	for _, address := range []string{"169.254.169.254", "192.0.2.1", "::ffff:169.254.169.254", "fe80::1", "100.64.0.1"} {
		assert.False(t, within(netip.MustParseAddr(address), DefaultDial()), address)
	}
}

func TestInstanceThatDoesNotAnswerDelaysNobody(t *testing.T) {
	var g gatherer[int]
	all := []instance{{name: "quick"}, {name: "silent"}, {name: "unknown", problem: "no address"}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var answers []answered[int]
	require.Eventually(t, func() bool { // a busy machine may be slow to ask
		answers = g.ask(ctx, all, func(ctx context.Context, i instance) (int, error) {
			if i.name == "silent" {
				defer close(ended) // asked once only
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 7, nil
		})
		return answers[0].value == 7
	}, time.Minute, time.Millisecond)
	assert.NotEmpty(t, answers[1].err)
	assert.Equal(t, "no address", answers[2].err)
	cancel()
	<-ended
}
