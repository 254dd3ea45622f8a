package exchange

// State says how a call stands that waits for an answer.
type State uint8

// The states of a call that waits.
const (
	Pending  State = iota // there is no answer yet, or the call may pass only later
	Allowed               // the call may pass
	Denied                // it may not
	Released              // the limit was released: nothing is decided
)
