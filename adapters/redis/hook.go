package penstockredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

const (
	pipelineResource    = "redis:PIPELINE"
	transactionResource = "redis:MULTI"
)

// NewHook returns a hook that guards the commands of a client:
//
//	client.AddHook(penstockredis.NewHook(engine, penstockredis.Options{}))
//
// The engine nil stands for [penstock.Default]. One hook can be added to several clients. Add
// it only once to each, and not to the nodes of a cluster whose client has it: a command that
// passes two hooks is two calls.
func NewHook(engine *core.Engine, options Options) redis.Hook {
	if engine == nil {
		engine = penstock.Default()
	}
	h := &hook{engine: engine, options: options, commands: newCommands()}
	h.subjects.New = func() any { return new(subject) }
	if options.Failure == nil {
		h.options.Failure = func(_ redis.Cmder, err error) bool { return IsFailure(err) }
	}
	if options.Answer == nil {
		h.options.Answer = func(_ redis.Cmder, err error) outgoing.Answer { return Answer(err) }
	}
	return h
}

// hook implements [redis.Hook].
type hook struct {
	engine   *core.Engine
	options  Options
	commands *commands
	subjects sync.Pool // of *subject
}

// subject is what the attributes of a call are read from.
type subject struct {
	cmd  redis.Cmder // nil for pipelines
	name string      // in upper case
}

// DialHook leaves connections alone: the call is that of the command that needs one.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook guards single commands.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		command := h.commands.of(cmd)
		if command.exempt {
			return next(ctx, cmd)
		}
		if !h.throttles() {
			return h.command(ctx, command, cmd, next, nil)
		}
		call, err := h.begin(ctx, cmd, nil)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		var answer outgoing.Answer
		defer func() { call.End(answer) }() // also if the client panics
		return h.command(ctx, command, cmd, next, &answer)
	}
}

// command sends a command as a call of its resource. answer, if it is not nil, gets what the
// end says of the server; nothing if a rule refuses the command.
func (h *hook) command(
	ctx context.Context, command *command, cmd redis.Cmder, next redis.ProcessHook, answer *outgoing.Answer,
) error {
	resource := command.resource
	if h.options.Resource != nil {
		resource = h.options.Resource(ctx, cmd)
	}
	if resource == "" {
		return h.send(ctx, cmd, next, answer)
	}
	var guard core.Guard
	if err := h.enter(ctx, &guard, resource, subject{cmd, command.name}, nil); err != nil {
		cmd.SetErr(err)
		return err
	}
	blocks := exitUnless(&guard, func() bool { return h.blocks(ctx, command, cmd) })
	if blocks {
		return h.send(ctx, cmd, next, answer)
	}
	return h.process(ctx, &guard, cmd, next, answer)
}

// exitUnless ends a call, whose end says nothing, if blocks says that it may wait at the server, or
// if that panics.
func exitUnless(guard *core.Guard, blocks func() bool) bool {
	ends := true
	defer func() {
		if ends {
			guard.MarkIgnored()
			guard.Exit()
		}
	}()
	ends = blocks()
	return ends
}

// process runs a command that passed.
func (h *hook) process(
	ctx context.Context, guard *core.Guard, cmd redis.Cmder, next redis.ProcessHook, answer *outgoing.Answer,
) error {
	panicked := true // next, or Failure
	defer func() { exit(guard, panicked) }()
	err := h.send(ctx, cmd, next, answer)
	if err != nil {
		cause := causeOf(ctx, err)
		outgoing.MarkOutcome(guard, h.options.Failure(cmd, cause), cause)
	}
	panicked = false
	return err
}

// exit ends a call, which has failed if it panicked.
func exit(guard *core.Guard, panicked bool) {
	if panicked {
		guard.MarkFailed()
	}
	guard.Exit()
}

// ProcessPipelineHook guards pipelines and transactions.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p := h.inspect(cmds)
		if p.exempt {
			return next(ctx, cmds)
		}
		if !h.throttles() {
			return h.pipeline(ctx, p, cmds, next, nil)
		}
		call, err := h.begin(ctx, nil, cmds)
		if err != nil {
			setErr(cmds, err)
			return err
		}
		var answer outgoing.Answer
		defer func() { call.End(answer) }() // also if the client panics
		return h.pipeline(ctx, p, cmds, next, &answer)
	}
}

// pipeline sends a pipeline as [hook.command] sends a command.
func (h *hook) pipeline(
	ctx context.Context, p pipeline, cmds []redis.Cmder, next redis.ProcessPipelineHook, answer *outgoing.Answer,
) error {
	resource := p.resource
	if h.options.Pipeline != nil {
		resource = h.options.Pipeline(ctx, cmds)
	}
	if resource == "" {
		return h.sendPipeline(ctx, cmds, next, answer)
	}
	var guard core.Guard
	if err := h.enter(ctx, &guard, resource, subject{nil, p.name}, cmds); err != nil {
		setErr(cmds, err)
		return err
	}
	blocks := exitUnless(&guard, func() bool { return !p.transaction && h.anyBlocks(ctx, cmds) })
	if blocks {
		return h.sendPipeline(ctx, cmds, next, answer)
	}
	return h.processPipeline(ctx, &guard, cmds, next, answer)
}

// setErr sets the error of commands that are not sent.
func setErr(cmds []redis.Cmder, err error) {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// processPipeline runs a pipeline that passed.
func (h *hook) processPipeline(
	ctx context.Context, guard *core.Guard, cmds []redis.Cmder, next redis.ProcessPipelineHook, answer *outgoing.Answer,
) error {
	panicked := true // next, or Failure
	defer func() { exit(guard, panicked) }()
	err := h.sendPipeline(ctx, cmds, next, answer)
	if err != nil {
		h.markPipeline(ctx, guard, cmds, err)
	}
	panicked = false
	return err
}

// markPipeline marks how a pipeline ended with err: by its commands, or by err if none has
// an error.
func (h *hook) markPipeline(ctx context.Context, guard *core.Guard, cmds []redis.Cmder, err error) {
	var inconclusive error
	noneFailed := true // of the commands, as far as they know
	for _, cmd := range cmds {
		if cmd.Err() == nil {
			continue
		}
		noneFailed = false
		cause := causeOf(ctx, cmd.Err())
		if h.options.Failure(cmd, cause) {
			guard.MarkFailed()
			return
		}
		if outgoing.IsInconclusive(cause) {
			inconclusive = cause
		}
	}
	if noneFailed && len(cmds) > 0 {
		inconclusive = causeOf(ctx, err)
		outgoing.MarkOutcome(guard, h.options.Failure(cmds[0], inconclusive), inconclusive)
		return
	}
	outgoing.MarkOutcome(guard, false, inconclusive)
}

// enter enters the call of a command, or of the commands of a pipeline.
func (h *hook) enter(
	ctx context.Context, guard *core.Guard, resource string, of subject, pipeline []redis.Cmder,
) (err error) {
	s := h.subjects.Get().(*subject) //nolint:forcetypeassert // the pool has nothing else
	*s = of
	var few [5]core.Option
	opts := append(few[:0], core.Attributes(attributeOf, s))
	if p, _ := core.PriorityFromContext(ctx); p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	switch {
	case of.cmd == nil:
		opts = append(opts, core.Tokens(h.tokens(ctx, pipeline)))
	case h.options.Tokens != nil:
		opts = append(opts, core.Tokens(h.options.Tokens(ctx, of.cmd)))
	}
	if h.options.Attributes != nil {
		if of.cmd != nil {
			pipeline = []redis.Cmder{of.cmd}
		}
		opts = append(opts, h.options.Attributes(ctx, pipeline)...)
	}
	*guard, err = h.engine.Entry(ctx, resource, opts...)
	*s = subject{}
	h.subjects.Put(s)
	return err
}

// tokens returns how many tokens a pipeline takes.
func (h *hook) tokens(ctx context.Context, cmds []redis.Cmder) int {
	if h.isTransaction(cmds) {
		cmds = cmds[1 : len(cmds)-1]
	}
	if h.options.Tokens == nil {
		return max(len(cmds), 1)
	}
	sum := 0
	for _, cmd := range cmds {
		n := h.options.Tokens(ctx, cmd)
		if n < 1 {
			return n // an error, as for a single command
		}
		sum += n
	}
	return max(sum, 1)
}

// pipeline is what a pipeline is a call of by default.
type pipeline struct {
	resource, name string
	transaction    bool
	exempt         bool // all of its commands are
}

func (h *hook) inspect(cmds []redis.Cmder) pipeline {
	if h.isTransaction(cmds) {
		return pipeline{transactionResource, "MULTI", true, false}
	}
	for _, cmd := range cmds {
		if !h.commands.of(cmd).exempt {
			return pipeline{pipelineResource, "PIPELINE", false, false}
		}
	}
	return pipeline{exempt: true}
}

func (h *hook) isTransaction(cmds []redis.Cmder) bool {
	return len(cmds) >= 2 && h.commands.of(cmds[0]).name == "MULTI" && h.commands.of(cmds[len(cmds)-1]).name == "EXEC"
}

// blocks says whether a command may wait at the server.
func (h *hook) blocks(ctx context.Context, command *command, cmd redis.Cmder) bool {
	if h.options.Blocking != nil {
		return h.options.Blocking(ctx, cmd)
	}
	return command.blocks.applies(cmd)
}

func (h *hook) anyBlocks(ctx context.Context, cmds []redis.Cmder) bool {
	for _, cmd := range cmds {
		if h.blocks(ctx, h.commands.of(cmd), cmd) {
			return true
		}
	}
	return false
}
