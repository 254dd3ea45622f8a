package scenario

import (
	"errors"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// Load is a load and where it is written.
type Load struct {
	simulate.Load

	document string
	at       place // of the streams
	streams  []stream
	fields   given // of servers, signals and the fleet
	bad      bool  // not all of it could be read
}

// ParseLoad reads a load file. The document is what messages call it. The error
// is [rules.Problems]: every mistake there is.
func ParseLoad(document string, data []byte) (Load, error) {
	r, root := open(document, data)
	if root == nil {
		return Load{}, r.problems.Err()
	}
	load := r.load(root)
	if err := r.problems.Err(); err != nil {
		return Load{}, err
	}
	return load, nil
}

// Explain returns the error of a simulation of the load. Where it is about the
// load, it is [rules.Problems] with their places.
func (l Load) Explain(err error) error {
	var faults simulate.Faults
	if !errors.As(err, &faults) {
		return err
	}
	var problems rules.Problems
	for _, fault := range faults {
		problem, _ := l.problem(fault)
		problems = append(problems, problem)
	}
	return problems
}

// problem returns a fault of the load with its place, and whether it is sure:
// false when the field at fault could not be read in the first place.
func (l Load) problem(fault simulate.Fault) (problem rules.Problem, sure bool) {
	problem = rules.Problem{
		Document: l.document, Field: wording.Printable(fault.Field), Message: wording.Printable(fault.Message),
	}
	at, sure := l.at, true
	if fault.Stream >= 0 && fault.Stream < len(l.streams) {
		s := l.streams[fault.Stream]
		at, sure = s.at, !s.bad && (fault.Field != "rate" || !s.fields["times"].bad)
		if f, ok := s.fields.find(fault.Field); ok {
			at, sure = f.at, sure && !f.bad
		}
	} else if f, ok := l.fields.find(fault.Field); ok {
		at, sure = f.at, !f.bad
	}
	problem.Line, problem.Column = at.line, at.column
	return problem, sure
}

// load reads the mapping that a load file is.
func (r *reader) load(n *yaml.Node) Load {
	load := Load{document: r.document, fields: make(given)}
	found := r.mapping(n, "the load",
		field{"streams", func(n *yaml.Node) { r.streams(&load, n) }},
		field{"servers", func(n *yaml.Node) { load.Servers = r.servers(n, load.fields) }},
		field{"signals", func(n *yaml.Node) { load.Signals = r.signals(n, load.fields) }},
		field{"recharges", func(n *yaml.Node) { load.Recharges = r.recharges(n, load.fields) }},
		field{"fleet", func(n *yaml.Node) { load.Fleet = r.fleet(n, load.fields) }},
		field{"start", func(n *yaml.Node) { load.Start = r.start(n); load.fields.add("start", n, given{}) }},
		field{"seed", func(n *yaml.Node) { load.Seed = r.seed(n) }},
	)
	if found == nil {
		return load
	}
	if _, ok := found["streams"]; !ok {
		r.fail(placeOf(n), "streams", "is missing: list the calls that come")
	} else if load.at != (place{}) { // else it is misspelled
		r.validate(load)
	}
	return load
}

// validate reports what is wrong with a load that has been read.
func (r *reader) validate(load Load) {
	for _, fault := range load.Validate() {
		if problem, sure := load.problem(fault); sure {
			r.problems = append(r.problems, problem)
		}
	}
}

// start reads the time at which a simulation begins.
func (r *reader) start(n *yaml.Node) time.Time {
	text := r.text(n, "start")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil && text != "" {
		r.fail(placeOf(n), "start", "is %q: write a time with its offset from UTC, such as 2026-02-28T22:00:00Z", text)
	}
	return at
}

func (r *reader) seed(n *yaml.Node) uint64 {
	seed := r.whole(n, "seed")
	if seed < 0 {
		r.fail(placeOf(n), "seed", "is %d: must be 0 or more", seed)
	}
	return uint64(max(0, seed))
}

// streams reads a list of streams, or one alone, each in the short or the long
// form.
func (r *reader) streams(load *Load, n *yaml.Node) {
	load.at = placeOf(n)
	for _, item := range items(n) {
		var s stream
		if isScalar(item) {
			s = r.shortStream(item)
		} else {
			s = r.longStream(item)
		}
		load.streams = append(load.streams, s)
		load.Streams = append(load.Streams, s.Stream)
	}
}

// resources returns the names of the load's resources, in order of appearance.
func (l Load) resources() nameList {
	var list nameList
	seen := make(map[string]bool)
	for _, s := range l.Streams {
		if !seen[s.Resource] {
			seen[s.Resource] = true
			list = append(list, s.Resource)
		}
	}
	return list
}
