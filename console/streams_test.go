package console_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
)

// Two hundred streams are more than the console serves: the last ones are told to come later, and there is
// space again when the others are gone.
func TestTwoHundredStreamsAreTooMany(t *testing.T) {
	address := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	open := func(ctx context.Context) (*http.Response, bool) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/live?screen=overview", http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		return response, response.StatusCode == http.StatusOK
	}
	ctx, cancel := context.WithCancel(t.Context())
	opened := 0
	for range 200 {
		response, ok := open(ctx)
		t.Cleanup(func() { _ = response.Body.Close() })
		if ok {
			opened++
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		assert.NotEmpty(t, response.Header.Get("Retry-After"))
	}
	assert.Equal(t, 128, opened)
	code, _, _ := send(t, http.MethodGet, address+"/api/explain?resource=orders", "", nil)
	assert.Equal(t, http.StatusOK, code, "other requests are answered")
	cancel()
	require.Eventually(t, func() bool {
		response, ok := open(t.Context())
		_ = response.Body.Close()
		return ok
	}, time.Minute, 50*time.Millisecond)
}
