package service_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/service"
)

func TestMain(m *testing.M) {
	stop, err := peer.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// each runs a test with a service in each framework, with each guard. The subtests are not
// parallel, for Sentinel has one set of rules for all.
func each(t *testing.T, limit int, test func(t *testing.T, guard service.Guard, s *service.Service)) {
	t.Helper()
	for _, framework := range service.Frameworks() {
		for _, guard := range service.Guards() {
			t.Run(framework.Name+"/"+string(guard), func(t *testing.T) {
				t.Cleanup(func() { require.NoError(t, peer.Reset()) })
				s, err := framework.New(guard, limit)
				require.NoError(t, err)
				test(t, guard, s)
			})
		}
	}
}

func TestServicesLetPassWhatTheLimitAllows(t *testing.T) {
	each(t, peer.Huge, func(t *testing.T, _ service.Guard, s *service.Service) {
		client, stop, err := s.Listen()
		require.NoError(t, err)
		defer stop()
		for range 3 {
			assert.True(t, s.Call())
			passed, err := client.Call()
			require.NoError(t, err)
			assert.True(t, passed, "over the network")
		}
	})
}

func TestOnlyGuardedServicesRefuse(t *testing.T) {
	each(t, 0, func(t *testing.T, guard service.Guard, s *service.Service) {
		client, stop, err := s.Listen()
		require.NoError(t, err)
		defer stop()
		for range 3 {
			assert.Equal(t, guard == service.Bare, s.Call())
			passed, err := client.Call()
			require.NoError(t, err)
			assert.Equal(t, guard == service.Bare, passed, "over the network")
		}
	})
}
