package scenario

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/simulate"
)

// stream is a stream of calls and where it is written.
type stream struct {
	simulate.Stream
	at     place
	fields given
	bad    bool // it could not be read at all
}

// longStream reads a stream that is written as a mapping.
func (r *reader) longStream(n *yaml.Node) stream {
	s := stream{at: placeOf(n), bad: n.Kind != yaml.MappingNode}
	s.fields = r.mapping(n, "a stream",
		field{"resource", func(n *yaml.Node) { s.Resource = r.text(n, "resource") }},
		field{"rate", func(n *yaml.Node) { s.Rate = r.rate(n, "rate") }},
		field{"times", func(n *yaml.Node) { s.Times = r.times(n) }},
		field{"shape", func(n *yaml.Node) { s.Shape = simulate.Shape(r.text(n, "shape")) }},
		field{"from", func(n *yaml.Node) { s.From = r.duration(n, "from") }},
		field{"until", func(n *yaml.Node) { s.Until = r.positive(n, "until") }},
		field{"tokens", func(n *yaml.Node) { s.Tokens = r.tokens(n) }},
		field{"origin", func(n *yaml.Node) { s.Origin = r.text(n, "origin") }},
		field{"args", func(n *yaml.Node) { s.Args = r.arguments(n) }},
		field{"serviceTime", func(n *yaml.Node) { s.ServiceTime = r.duration(n, "serviceTime") }},
	)
	return s
}

func (r *reader) times(n *yaml.Node) []time.Duration {
	times := make([]time.Duration, 0, len(items(n)))
	for _, item := range items(n) {
		times = append(times, r.duration(item, "times"))
	}
	return times
}

// positive reads a duration for which zero is not the same as left out.
func (r *reader) positive(n *yaml.Node, field string) time.Duration {
	before := len(r.problems)
	d := r.duration(n, field)
	if d <= 0 && len(r.problems) == before {
		r.fail(placeOf(n), field, "is %v: must be longer than 0s", d)
	}
	return d
}

// tokens reads how many tokens a call takes, for which zero is not the same as
// left out.
func (r *reader) tokens(n *yaml.Node) int {
	before := len(r.problems)
	tokens := r.whole(n, "tokens")
	if tokens < 1 && len(r.problems) == before {
		r.fail(placeOf(n), "tokens", "is %d: must be 1 or more", tokens)
	}
	return tokens
}

func (r *reader) arguments(n *yaml.Node) []any {
	var args []any
	for _, item := range items(n) {
		args = append(args, r.argument(item, "args"))
	}
	return args
}
