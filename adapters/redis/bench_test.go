package penstockredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/rules"
)

// hooked is the hook around a client that answers at once.
type hooked struct {
	process  redis.ProcessHook
	pipeline redis.ProcessPipelineHook
}

func newHooked(tb testing.TB, set rules.Set) hooked {
	tb.Helper()
	return newHookedWith(tb, set, penstockredis.Options{})
}

func newHookedWith(tb testing.TB, set rules.Set, options penstockredis.Options) hooked {
	tb.Helper()
	hook := penstockredis.NewHook(newEngine(tb, set), options)
	return hooked{
		hook.ProcessHook(func(context.Context, redis.Cmder) error { return nil }),
		hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil }),
	}
}

// BenchmarkHook is what the hook adds to a command.
func BenchmarkHook(b *testing.B) {
	ctx := context.Background()
	get := redis.NewStringCmd(ctx, "get", "a")
	pipeline := []redis.Cmder{get, get, get, get, get, get, get, get, get, get}
	passing, refusing := newHooked(b, limited("redis:GET", 1e9)), newHooked(b, limited("redis:GET", 0))
	for _, bench := range []struct {
		name string
		call func() error
	}{
		{"passed", func() error { return passing.process(ctx, get) }},
		{"refused", func() error { return refusing.process(ctx, get) }},
		{"pipeline of 10", func() error { return passing.pipeline(ctx, pipeline) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = bench.call()
			}
		})
	}
}

func TestHookAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops what is in pools")
	}
	ctx := context.Background()
	get := redis.NewStringCmd(ctx, "get", "a")
	pipeline := []redis.Cmder{get, get}
	passing, refusing := newHooked(t, limited("redis:GET", 1e9)), newHooked(t, limited("redis:GET", 0))
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = passing.process(ctx, get) }), "passed")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = refusing.process(ctx, get) }), "refused")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = passing.pipeline(ctx, pipeline) }), "pipeline")
}
