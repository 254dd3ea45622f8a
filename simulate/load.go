package simulate

import "time"

// Shape says how the calls of a stream lie in time.
type Shape string

const (
	// Even spaces calls evenly: the k-th comes at From + k/Rate.
	Even Shape = "even"
	// Poisson lets calls come independently of one another, as those of many
	// users do: the gaps between them are random, 1/Rate on average.
	Poisson Shape = "poisson"
)

// Load is the calls of a simulation: those of all its streams.
type Load struct {
	// Streams are where calls come from. Of calls that arrive at the same
	// instant, those of an earlier stream come first.
	Streams []Stream

	// Seed sets the random gaps of [Poisson] streams, together with the index of
	// the stream: the same seed gives the same load.
	Seed uint64
}

// Stream is calls of one kind. It has either a Rate or Times.
type Stream struct {
	// Resource is the name of the called resource, at most
	// [rules.MaxNameLength] bytes.
	Resource string

	// Rate is how many calls come in a second, on average where the Shape is
	// random. More than 0, at most [MaxRate].
	Rate float64

	// Times are when the calls come, in any order; a time given twice is two
	// calls. Each from 0 to [MaxDuration].
	Times []time.Duration

	// Shape says how the calls of a Rate lie in time. Defaults to [Even].
	Shape Shape

	// From and Until bound the calls of a Rate: they come at From, or after it,
	// and before Until. From defaults to 0; without Until they come until the
	// simulation ends, which then must be given a duration.
	From, Until time.Duration

	// Tokens is how many tokens each call takes. Defaults to 1.
	Tokens int

	// Origin is who calls. Defaults to nobody in particular.
	Origin string

	// Args are the arguments of each call: strings, booleans and numbers of the
	// built-in types. No rule looks at them.
	Args []any

	// ServiceTime is how long a call takes once it has passed. Defaults to 0;
	// at most [MaxDuration].
	ServiceTime time.Duration
}
