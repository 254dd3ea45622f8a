package core_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/rules"
)

// TestValuesHaveOneLimitOnEightEngines has eight engines, each with the goroutine of its own,
// share limits for each account.
func TestValuesHaveOneLimitOnEightEngines(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"lease", "ask"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set, err := rules.Parse("", []byte(`hotParam:
  - {name: logins, match: "logins:*", param: account, limit: 20, window: 2s, scope: fleet, fleet: {mode: `+mode+`, onOutage: closed}}`))
				require.NoError(t, err)
				c := clock.System()
				store := fleetmemory.New(c)
				engines := make([]*core.Engine, 8)
				for i := range engines {
					engines[i] = core.New(core.Config{
						Logger: quiet,
						Fleet:  fleet.Config{Backend: store, Instance: strconv.Itoa(i)},
					})
					require.NoError(t, engines[i].Load(set))
				}
				time.Sleep(2 * time.Second)
				passed := map[string]int{}
				for range 2000 { // ten seconds
					for i, e := range engines {
						account := strconv.Itoa(i % 3)
						if g, err := e.Entry(context.Background(), "logins:web", core.String("account", account)); err == nil {
							passed[account]++
							g.Exit()
						}
					}
					time.Sleep(5 * time.Millisecond)
				}
				for account, n := range passed {
					assert.LessOrEqual(t, n, 20+10*10+8, account)
					assert.GreaterOrEqual(t, n, 90, account)
				}
				explained := engines[0].Explain("logins:web")
				require.Len(t, explained, 1)
				require.NotNil(t, explained[0].Fleet)
				assert.Positive(t, explained[0].Fleet.Demand)
				assert.NotEmpty(t, explained[0].Values)
				assert.Equal(t, "hotParam/logins", engines[0].Fleet().Status(c.Now()).Limits[0].Key)
				for _, e := range engines {
					e.Close()
				}
			})
		})
	}
}
