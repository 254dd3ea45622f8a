package command_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// One worker's worth of calls, at three times what it can do.
func TestPrioritiesOfCallsThatWaitAreTested(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{"render_test.yaml": `rules:
  isolation:
    - {name: pool, resource: render, limit: 1, maxWait: 400ms, maxQueue: 10}
cases:
  - name: only the least important calls are refused
    load:
      - render 8/s for 5s serviceTime=100ms priority=high attrs=from:checkout
      - render 20/s for 5s serviceTime=100ms priority=low attrs=from:reports
    expect:
      - {value: checkout, total: {passed: 40, blocked: 0}, maxWait: ..200ms}
      - {value: reports, blockedBy: {pool: 86}}
  - name: of eight places one goes to calls of lower priority
    load:
      - render at 0 x10 serviceTime=10ms priority=high attrs=from:checkout
      - render at 0 serviceTime=10ms priority=low attrs=from:reports
    expect:
      - {value: reports, waits: 80ms}
`})
	got := user{}.run(t, "test", filepath.Join(directory, "render_test.yaml"))
	assert.Zero(t, got.code, got.out+got.err)
}
