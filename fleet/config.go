package fleet

import "time"

// Config says what the limits of a fleet are shared through.
type Config struct {
	// Backend is what all instances have in common. Nil: there is no fleet. A [Store] can
	// count; another backend is enough for [ModeShare].
	Backend Backend

	// Instance is the name of this instance. A second one with the name is not part of the
	// fleet, see [ErrNameTaken]. Defaults to the host name, the process id and a random part.
	Instance string

	// Instances is how many instances there are to be, for as long as the backend has not told:
	// what an instance that starts while the backend does not answer shares a limit by. Without
	// it, such an instance passes nothing, unless [OutageOpen] says otherwise.
	Instances int

	// AwaitBackend has an engine with limits of the fleet be ready only when the backend has
	// answered once, see core.Engine.Ready. Without it, an engine that starts while the backend is
	// away is ready, and its limits go on as their rules say.
	AwaitBackend bool

	// Timeout is how long the backend may take for an answer. Defaults to 100 ms.
	Timeout time.Duration

	// Manual is for simulations of this module, which send what the member has to say by themselves: the
	// engine does not. A backend is not needed then; it is taken for a [Store] if there is none.
	Manual bool
}
