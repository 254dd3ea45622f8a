package rpc

import (
	"context"
	"errors"
	"time"
)

// maxSlack bounds the slack of a caller.
const maxSlack = 50 * time.Millisecond

// Caller is who waits for the end of a call.
type Caller struct {
	ctx context.Context

	// slack is how long before the deadline a cancelled call counts as having
	// reached it: a third of the time it had, at most maxSlack. A client cancels
	// the call at its deadline, and that arrives at about the time of the deadline
	// on the server, as often before it as after.
	slack time.Duration
}

// CallerOf returns the caller of a call that begins now with the context.
func CallerOf(ctx context.Context) Caller {
	c := Caller{ctx: ctx}
	if deadline, ok := ctx.Deadline(); ok {
		c.slack = min(time.Until(deadline)/3, maxSlack)
	}
	return c
}

// Context returns the context of the call.
func (c Caller) Context() context.Context { return c.ctx }

// Outcome returns the code of a call from the point of view of its caller, if it ended with
// code on this side: DeadlineExceeded if it was under way at its deadline, Canceled if the
// caller cancelled it before, else code. inbound says that this side is the server: its reply
// counts as none if it is too late, while a client that has received a reply has it.
//
// A client whose deadline has passed cancels the call, and a server cannot distinguish this
// from a client that disconnects. Therefore a call that is cancelled just before its
// deadline, within a third of its time but at most 50 ms, counts as having reached it.
func (c Caller) Outcome(code Code, inbound bool) Code {
	gone := c.ctx.Err()
	switch {
	case code == OK && (gone == nil || !inbound):
		return OK
	case gone == nil && code != Canceled:
		return code
	case c.metDeadline(gone):
		return DeadlineExceeded
	case gone != nil:
		return Canceled
	}
	return code
}

func (c Caller) metDeadline(gone error) bool {
	if errors.Is(gone, context.DeadlineExceeded) {
		return true
	}
	deadline, ok := c.ctx.Deadline()
	return ok && time.Until(deadline) <= c.slack
}
