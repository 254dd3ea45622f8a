package penstockredis_test

import (
	"context"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/core"
)

// reply is an answer of a server that is an error.
type reply string

func (r reply) Error() string { return string(r) }

// RedisError makes it one of go-redis.
func (reply) RedisError() {}

func TestConformance(t *testing.T) {
	single := func(ctx context.Context, client *redis.Client) error { return client.Get(ctx, "a").Err() }
	adaptertest.Calls(t, conformance("redis:GET", single))
}

func TestConformanceOfPipelines(t *testing.T) {
	pipeline := func(ctx context.Context, client *redis.Client) error {
		pipe := client.Pipeline()
		pipe.Get(ctx, "a")
		_, err := pipe.Exec(ctx)
		return err
	}
	adaptertest.Calls(t, conformance("redis:PIPELINE", pipeline))
}

// conformance describes a client whose server is a hook.
func conformance(resource string, call func(context.Context, *redis.Client) error) adaptertest.CallsHarness {
	return adaptertest.CallsHarness{
		Resource: resource,
		Open: func(t *testing.T, c adaptertest.CallsClient) adaptertest.CallFunc {
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
			t.Cleanup(func() { _ = client.Close() })
			for _, guard := range c.Guards {
				client.AddHook(penstockredis.NewHook(guard.Engine, suiteOptions(&guard.Options)))
			}
			client.AddHook(answering(func(ctx context.Context, cmds []redis.Cmder) error {
				err := answer(ctx, c.Remote())
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
				return err
			}))
			return func(ctx context.Context) error { return call(ctx, client) }
		},
		Lacks: map[adaptertest.Feature]string{
			adaptertest.RetryDelays: "Redis does not say when to come back",
		},
	}
}

// answer returns how a command ends.
func answer(ctx context.Context, reply adaptertest.Reply) error {
	switch reply {
	case adaptertest.NotFoundReply:
		return redis.Nil
	case adaptertest.Broken:
		return io.EOF
	case adaptertest.Rejected:
		return busy
	case adaptertest.Silent:
		<-ctx.Done()
	}
	return ctx.Err()
}

const busy = reply("BUSY Redis is busy running a script.")

// suiteOptions returns options of the suite as those of the hook.
func suiteOptions(o *adaptertest.CallsOptions) penstockredis.Options {
	options := penstockredis.Options{Throttle: o.Throttle, RetryBudgets: o.RetryBudgets}
	if resource := o.Resource; resource != nil {
		options.Resource = func(ctx context.Context, _ redis.Cmder) string { return resource(ctx) }
		options.Pipeline = func(ctx context.Context, _ []redis.Cmder) string { return resource(ctx) }
	}
	if tokens := o.Tokens; tokens != nil {
		options.Tokens = func(ctx context.Context, _ redis.Cmder) int { return tokens(ctx) }
	}
	if attributes := o.Attributes; attributes != nil {
		options.Attributes = func(ctx context.Context, _ []redis.Cmder) []core.Option { return attributes(ctx) }
	}
	if failure := o.Failure; failure != nil {
		options.Failure = func(_ redis.Cmder, err error) bool { return failure(err) }
	}
	return options
}
