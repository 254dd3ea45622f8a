package penstockredis_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	penstockredis "github.com/penstock-go/penstock/adapters/redis"
)

// The place of a command is free again if an option fails.
func TestCommandWhoseOptionFailsKeepsNoPlace(t *testing.T) {
	for way, fail := range map[string]func(){"panic": func() { panic("failed") }, "Goexit": runtime.Goexit} {
		for name, options := range map[string]penstockredis.Options{
			"Blocking": {Blocking: func(context.Context, redis.Cmder) bool { fail(); return false }},
			"Failure":  {Failure: func(redis.Cmder, error) bool { fail(); return false }},
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				_, engine := record(t, "command")
				client := newClient(t, "127.0.0.1:1", engine, options)
				client.AddHook(answering(func(context.Context, []redis.Cmder) error { return redis.Nil }))
				for _, run := range []func(){
					func() { client.Get(t.Context(), "a") },
					func() {
						_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
					},
				} {
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						run()
					}()
					<-done
				}
				assert.EqualValues(t, 1, totals(engine, "redis:GET").Completed)
				assert.Zero(t, totals(engine, "redis:GET").InFlight)
				assert.EqualValues(t, 1, totals(engine, "redis:PIPELINE").Completed)
				assert.Zero(t, totals(engine, "redis:PIPELINE").InFlight)
			})
		}
	}
}
