package recording

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Other is the name in place of those for which a table of names had no space.
const Other = "(other)"

// Recording is the calls of some time, of one instance of a service or of several.
type Recording struct {
	Instances []Instance

	// Hashed says that values of attributes are hashes. Two are the same if the values are, on one
	// instance; those of several instances cannot be compared.
	Hashed bool

	// Names that calls refer to by their index. The first resource, origin and rule stand for none.
	Resources []string
	Origins   []string
	Rules     []Rule
	Keys      []string // of attributes
	Values    []any    // string, int64 or bool: of attributes, if they are not hashed

	Calls []Call // by the instant at which they were decided

	Attributes []Attribute // of all calls, see AttributesOf
}

// Instance is what was recorded of one instance.
type Instance struct {
	Name string

	// From is the instant from which all calls are there, and Until the one up to which they are: like
	// all instants of a recording as the wall clock of the instance told it when it was read.
	From, Until clock.Instant

	// Error says why there are no calls of the instance; "" if it was recorded.
	Error string
}

// Rule names a rule.
type Rule struct{ Kind, Name string }

// Call is one call, and what became of it.
type Call struct {
	// At is when it was decided on: when it passed or was refused, or its caller gave up.
	At clock.Instant

	// Wait is how long it waited before that.
	Wait time.Duration

	// Patience is how long it could wait at the most, from its arrival on, if its context had a
	// deadline; 0 if that is not known: of calls that passed at once it is not recorded.
	Patience time.Duration

	// Duration is how long it was under way, once it had passed; [Unknown] if it had not ended.
	Duration time.Duration

	// SettledAfter is how long after it passed the call was charged with Settled tokens in place of
	// Tokens; [Unknown] if it was not. Of several charges the last one is recorded.
	SettledAfter time.Duration
	Settled      int32

	Tokens int32

	Instance, Resource, Origin, Rule uint16 // indexes; Rule is what refused the call

	Priority int8 // as of the package rule
	Outcome  Outcome

	Inbound   bool
	NoWait    bool // it did not want to wait
	LongLived bool // known when it entered, or when it ended
	Failed    bool // when it ended
	Ignored   bool // its end tells nothing of what was called
	Cancelled bool // it was not made after all

	// The attributes that rules in force looked at are so many of the recording's, from an index on.
	AttributeCount uint8
	FirstAttribute uint32
}

// Unknown is the duration of a call that had not ended.
const Unknown = time.Duration(-1)

// Outcome is what became of a call.
type Outcome uint8

// The outcomes.
const (
	Passed  Outcome = iota
	Refused         // by a rule
	GaveUp          // its context ended while it waited
)

// facts are what is true or false of a call, in the order of the bits in a file.
func (c *Call) facts() [6]*bool {
	return [...]*bool{&c.Inbound, &c.NoWait, &c.LongLived, &c.Failed, &c.Ignored, &c.Cancelled}
}

// Attribute is an attribute of a call.
type Attribute struct {
	Key   uint16 // index of the key
	Value uint64 // a hash, or the index of the value
}

// AttributesOf returns the attributes of one of the calls.
func (r *Recording) AttributesOf(c *Call) []Attribute {
	return r.Attributes[c.FirstAttribute:][:c.AttributeCount]
}

// Arrived returns when the call arrived.
func (c *Call) Arrived() clock.Instant { return c.At.Add(-c.Wait) }

// Span returns when the first instance began to be recorded, and when the last one ended.
func (r *Recording) Span() (from, until clock.Instant) {
	recorded := false
	for i := range r.Instances {
		of := &r.Instances[i]
		switch {
		case of.Error != "":
		case !recorded:
			recorded, from, until = true, of.From, of.Until
		default:
			from, until = min(from, of.From), max(until, of.Until)
		}
	}
	return from, until
}

// Merge returns the recordings of several instances as one. Names are the same; hashes of values are
// not, so a call keeps that of its instance. It changes none of the recordings. The error says that the
// names are too many for one recording, or that some have hashes and others values.
func Merge(of ...*Recording) (*Recording, error) {
	var m merger
	for i, r := range of {
		if i > 0 && r.Hashed != m.out.Hashed {
			return nil, errMixed
		}
		m.out.Hashed = r.Hashed
		if err := m.add(r); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(m.out.Calls, func(a, b Call) int { return cmp.Compare(a.At, b.At) })
	return &m.out, nil
}

// merger makes one recording of several.
type merger struct {
	out                      Recording
	resources, origins, keys map[string]uint16
	rules                    map[Rule]uint16
	values                   map[any]uint64
}

func (m *merger) add(r *Recording) error {
	resources, ok1 := indexAll(&m.out.Resources, &m.resources, r.Resources)
	origins, ok2 := indexAll(&m.out.Origins, &m.origins, r.Origins)
	rules, ok3 := indexAll(&m.out.Rules, &m.rules, r.Rules)
	keys, ok4 := indexAll(&m.out.Keys, &m.keys, r.Keys)
	if !ok1 || !ok2 || !ok3 || !ok4 || len(m.out.Instances)+len(r.Instances) > maxNames {
		return errTooMany
	}
	values := m.addValues(r.Values)
	first, firstAttribute := uint16(len(m.out.Instances)), uint32(len(m.out.Attributes))
	m.out.Instances = append(m.out.Instances, r.Instances...)
	for _, c := range r.Calls {
		c.Instance += first
		c.Resource, c.Origin, c.Rule = resources[c.Resource], origins[c.Origin], rules[c.Rule]
		c.FirstAttribute += firstAttribute
		m.out.Calls = append(m.out.Calls, c)
	}
	for _, a := range r.Attributes {
		a.Key = keys[a.Key]
		if !r.Hashed {
			a.Value = values[a.Value]
		}
		m.out.Attributes = append(m.out.Attributes, a)
	}
	return nil
}

func (m *merger) addValues(values []any) (indexes []uint64) {
	if m.values == nil {
		m.values = make(map[any]uint64)
	}
	for _, v := range values {
		at, known := m.values[v]
		if !known {
			at = uint64(len(m.out.Values))
			m.values[v], m.out.Values = at, append(m.out.Values, v)
		}
		indexes = append(indexes, at)
	}
	return indexes
}

// indexAll adds names to a table and returns their indexes there; false if there are too many.
func indexAll[T comparable](table *[]T, known *map[T]uint16, names []T) (indexes []uint16, ok bool) {
	if *known == nil {
		*known = make(map[T]uint16)
	}
	for _, name := range names {
		at, found := (*known)[name]
		if !found {
			if len(*table) >= maxNames {
				return nil, false
			}
			at = uint16(len(*table))
			(*known)[name], *table = at, append(*table, name)
		}
		indexes = append(indexes, at)
	}
	return indexes, true
}
