package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/fleet/redis"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

// What etcd cannot count two instances share by Redis: places of calls under way, of all and of each value, and
// balances. PENSTOCK_PICTURES has a picture of it written.
func TestPlacesAndBalancesOfTheFleetAreOnThePage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	page, address, s := openBrowser(t)
	for _, i := range s.instances {
		i.close()
	}
	s.instances = nil
	now, err := s.store.Pull(t.Context())
	require.NoError(t, err)
	_, err = s.store.Push(t.Context(), store.Push{Author: "example", Message: "places", Expect: now.Revision, Documents: []store.Document{{Name: "shared.yaml", Data: []byte(`
isolation: [{name: reports, resource: "reports:make", limit: 12, scope: fleet}]
hotParam: [{name: exports-of-one, resource: "exports:make", param: tenant, concurrency: 4, scope: fleet}]
flow: [{name: credit, resource: "sms:send", algorithm: prepaid, limit: 500, scope: fleet}]
`)}}})
	require.NoError(t, err)
	for n := range 2 {
		backend, err := redis.Connect(redis.Options{Addresses: []string{server.Addr()}, App: "shop"})
		require.NoError(t, err)
		i, err := s.openInstanceWith(t.Context(), fmt.Sprintf("worker-%d", n+1), backend)
		require.NoError(t, err)
		s.instances = append(s.instances, i)
	}
	for n, i := range s.instances {
		hold(t, i.engine, "reports:make", 3+2*n)
		hold(t, i.engine, "exports:make", 1+n, core.String("tenant", "acme"))
		hold(t, i.engine, "sms:send", 1)
	}
	do(page, t, open(address+"/#/fleet"), shows("8 of 12 places in use"), shows("at most 4 by each value"), shows("a balance"),
		until(`!document.getElementById("screen").textContent.includes("24h")`))
	if os.Getenv(picturesIn) != "" {
		do(page, t, picture(t, "places", 1360))
	}
	do(page, t, visit("#/quotas"), shows("498"))
}

// hold has calls pass and go on until the test ends. The first ones may have to be asked for.
func hold(t *testing.T, engine *core.Engine, resource string, calls int, options ...core.Option) {
	t.Helper()
	for range calls {
		require.Eventually(t, func() bool {
			guard, err := engine.Entry(context.Background(), resource, options...)
			if err == nil {
				t.Cleanup(guard.Exit)
			}
			return err == nil
		}, patience, 10*time.Millisecond)
	}
}
