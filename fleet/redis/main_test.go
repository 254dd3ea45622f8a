package redis

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
)

func TestMain(m *testing.M) {
	longtest.AtOnce(6)
	code := m.Run()
	// The client closes connections of clusters that have changed after some seconds.
	leak := goleak.Find()
	for deadline := time.Now().Add(patience); leak != nil && time.Now().Before(deadline); leak = goleak.Find() {
		time.Sleep(100 * time.Millisecond)
	}
	if leak != nil && code == 0 {
		fmt.Fprintln(os.Stderr, leak)
		code = 1
	}
	os.Exit(code)
}

// patience is how long tests wait for what happens soon. It is reached only by a test that
// fails.
const patience = 2 * time.Minute

// open returns a store that is closed with the test.
func open(t testing.TB, options Options) *Store {
	t.Helper()
	if options.App == "" {
		options.App = "test"
	}
	s, err := Connect(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// exchange makes requests within a time that is enough.
func exchange(t testing.TB, s fleet.Store, requests ...fleet.Request) []fleet.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	replies := make([]fleet.Reply, len(requests))
	s.Exchange(ctx, requests, replies)
	return replies
}

// within makes a request that may take some time, and fails the test if it takes much longer.
func within(t testing.TB, s fleet.Store, timeout time.Duration, requests ...fleet.Request) []fleet.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	replies := make([]fleet.Reply, len(requests))
	began := time.Now()
	s.Exchange(ctx, requests, replies)
	assert.Less(t, time.Since(began), timeout+patience, "it hangs")
	return replies
}
