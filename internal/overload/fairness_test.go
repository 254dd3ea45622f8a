package overload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// At three times the capacity callers of one priority are served nearly always or nearly
// never for some seconds, and within a minute everybody has a turn.
func TestSameCallersAreServedForAWhile(t *testing.T) {
	const slices, length = 12, 5 // the minute from 10 s on
	set, err := rules.Parse("rules.yaml", []byte("adaptive: [{inbound: true, fairBy: user}]"))
	require.NoError(t, err)
	s := reference()
	load := steady(3)(s)
	load.Seed, load.Servers = 1, []simulate.Server{s.server()}
	load.Streams[0].Attrs = []simulate.Attr{{Name: "user", Count: 500, Shape: simulate.Uniform}}
	type counts struct{ calls, good [slices]float64 }
	users := make(map[any]*counts)
	_, err = simulate.Run(t.Context(), set, load, simulate.Options{Duration: 70 * time.Second, OnEvent: func(e simulate.Event) {
		slice := int(e.T-10) / length
		if e.T < 10 || slice >= slices {
			return
		}
		if users[e.Value] == nil {
			users[e.Value] = new(counts)
		}
		u := users[e.Value]
		u.calls[slice]++
		if e.Outcome == simulate.Pass && !e.Failed {
			u.good[slice]++
		}
	}})
	require.NoError(t, err)
	sharp, all := 0, 0
	for user, u := range users {
		served, calls := 0.0, 0.0
		for i := range slices {
			if u.calls[i] == 0 {
				continue
			}
			all++
			if ratio := u.good[i] / u.calls[i]; ratio >= 0.8 || ratio <= 0.2 {
				sharp++
			}
			served += u.good[i]
			calls += u.calls[i]
		}
		assert.Greater(t, served/calls, 0.1, "%v is hardly served within a minute", user)
	}
	assert.Len(t, users, 500)
	assert.Greater(t, float64(sharp)/float64(all), 0.75, "callers who are served nearly always or nearly never")
}
