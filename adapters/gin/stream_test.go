package penstockgin_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
)

func TestEventsAreFlushedWhileTheHandlerRuns(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	seen := make(chan struct{})
	server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		event := 0
		c.Stream(func(io.Writer) bool {
			if event > 0 {
				<-seen // the client has it before the handler goes on
			}
			if event++; event > 3 {
				return false
			}
			c.SSEvent("tick", event)
			return true
		})
	}))
	response, err := server.Client().Get(server.URL + "/orders/7")
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for event := range 3 {
		for _, want := range []string{"event:tick\n", fmt.Sprintf("data:%d\n", event+1), "\n"} {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, want, line)
		}
		assert.EqualValues(t, 1, engine.Resource(orders).Snapshot().InFlight)
		seen <- struct{}{}
	}
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}
