package command_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

func TestMetricsShowsLinesOfALog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 31, 12, 0, 0, 0, time.Local)
	var text string
	for i := range 3 {
		second := at.Add(time.Duration(i) * time.Second)
		text += fmt.Sprintf("%d|%s|orders|%d|2|3|1|14|0|7|0\n", second.UnixMilli(), second.Format(time.DateTime), 10+i)
		text += fmt.Sprintf("%d|%s|pay|1|0|1|0|0|0|1|0\ndamaged\n", second.UnixMilli(), second.Format(time.DateTime))
	}
	dir := tree(t, map[string]string{"shop-metrics.log.2026-10-31": text})
	run := func(args ...string) answer {
		return user{}.run(t, append([]string{"metrics", "--dir", dir, "--app", "shop"}, args...)...)
	}

	got := run("--from", "2026-10-31 12:00:01", "--to", at.Add(2*time.Second).UTC().Format(time.RFC3339), "--resource", "orders")
	assert.Equal(t, answer{
		"TIME                 RESOURCE  PASSED  BLOCKED  COMPLETED  FAILED  RT     MAX\n" +
			"2026-10-31 12:00:01  orders    11      2        3          1       14 ms  7\n" +
			"2026-10-31 12:00:02  orders    12      2        3          1       14 ms  7\n",
		"penstock: 3 damaged lines were passed over\n", command.ExitDone,
	}, got)

	got = run("--limit", "1", "-o", "json")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Contains(t, got.out, `"resource": "orders"`)
	assert.Contains(t, got.out, `"more": true`)
	assert.Equal(t, answer{"nothing was found\n", "penstock: 3 damaged lines were passed over\n", command.ExitDone},
		run("--resource", "none"))
}

func TestMetricsTellsMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for wanted, args := range map[string][]string{
		"which log? Name its directory with --dir and its service with --app": {},
		"its service with --app":              {"--dir", dir},
		`must be as in "2026-10-31 12:00:00"`: {"--dir", dir, "--app", "a", "--from", "noon"},
		"--to is before --from":               {"--dir", dir, "--app", "a", "--from", "12:00:00", "--to", "11:00:00"},
		"--limit must not be negative":        {"--dir", dir, "--app", "a", "-n", "-1"},
		"[last from]":                         {"--dir", dir, "--app", "a", "--last", "5m", "--from", "12:00:00"},
	} {
		got := user{}.run(t, append([]string{"metrics"}, args...)...)
		assert.Equal(t, command.ExitUsage, got.code, got.err)
		assert.Contains(t, got.err, wanted)
	}
	got := user{}.run(t, "metrics", "--dir", dir+"/none", "--app", "a")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "no such file")
}
