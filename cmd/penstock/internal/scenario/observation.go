package scenario

import (
	"math"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// observation is the outcome of the calls of a resource, or of all together.
type observation struct {
	seconds  []simulate.Second
	waits    []float64      // of the calls that passed, by arrival
	blockers map[string]int // how many calls each rule refused, by its label
	rules    []rule.Key     // all of them
	states   []simulate.StateChange
}

// observe returns the outcome of a simulation for a resource, or for all with "".
func observe(result simulate.Result, resource string, set rules.Set) observation {
	o := observation{blockers: make(map[string]int)}
	for key := range set.Keys() {
		o.rules = append(o.rules, key)
	}
	for _, s := range result.Seconds {
		if resource == "" || s.Resource == resource {
			o.add(s)
		}
	}
	for _, e := range result.Events {
		switch {
		case resource != "" && e.Resource != resource:
		case e.Outcome == simulate.Pass:
			o.waits = append(o.waits, e.Wait)
		default:
			o.blockers[o.label(rule.Key{Kind: rule.Kind(e.Kind), Name: e.Rule})]++
		}
	}
	for _, s := range result.States {
		if resource == "" || s.Resource == resource {
			o.states = append(o.states, s)
		}
	}
	return o
}

// label is what tests call a rule: by its name, or by its kind and name if rules of
// several kinds have that name.
func (o observation) label(key rule.Key) string {
	for _, other := range o.rules {
		if other.Name == key.Name && other.Kind != key.Kind {
			return string(key.Kind) + " " + key.Name
		}
	}
	return key.Name
}

// add adds a row to those of its second. Of ceilings it keeps the lowest. What is
// known of single resources only does not add up.
func (o *observation) add(s simulate.Second) {
	if s.Second == len(o.seconds) {
		o.seconds = append(o.seconds, s)
		return
	}
	sum := &o.seconds[s.Second]
	sum.Offered += s.Offered
	sum.Passed += s.Passed
	sum.Blocked += s.Blocked
	sum.Waited += s.Waited
	sum.Completed += s.Completed
	sum.Failed += s.Failed
	sum.Good += s.Good
	if sum.Ceiling == nil || s.Ceiling != nil && *s.Ceiling < *sum.Ceiling {
		sum.Ceiling = s.Ceiling
	}
}

// column is one of the numbers that each second has.
type column struct {
	name  string
	of    func(simulate.Second) float64 // NaN where there is none
	unit  unit
	total bool // the seconds add up
	each  bool // it is known of single resources only
	whole bool // it is not known of some of the calls of a resource
}

func columns() []column {
	count := func(name string, of func(simulate.Second) int) column {
		return column{name: name, of: func(s simulate.Second) float64 { return float64(of(s)) }, unit: counts(), total: true}
	}
	optional := func(name string, u unit, of func(simulate.Second) *float64) column {
		u.none = true
		return column{name: name, unit: u, of: func(s simulate.Second) float64 {
			if v := of(s); v != nil {
				return *v
			}
			return math.NaN()
		}}
	}
	list := []column{
		count("offered", func(s simulate.Second) int { return s.Offered }),
		count("passed", func(s simulate.Second) int { return s.Passed }),
		count("blocked", func(s simulate.Second) int { return s.Blocked }),
		count("waited", func(s simulate.Second) int { return s.Waited }),
		count("completed", func(s simulate.Second) int { return s.Completed }),
		count("failed", func(s simulate.Second) int { return s.Failed }),
		count("good", func(s simulate.Second) int { return s.Good }),
		optional("ceiling", counts(), func(s simulate.Second) *float64 { return s.Ceiling }),
	}
	list[len(list)-1].whole = true
	for _, c := range []column{
		count("inFlight", func(s simulate.Second) int { return s.InFlight }),
		optional("rtP50", seconds(), func(s simulate.Second) *float64 { return s.RTP50 }),
		optional("rtP99", seconds(), func(s simulate.Second) *float64 { return s.RTP99 }),
	} {
		c.each, c.total = true, false
		list = append(list, c)
	}
	return list
}

func (o observation) column(c column) []float64 {
	numbers := make([]float64, len(o.seconds))
	for i, s := range o.seconds {
		numbers[i] = c.of(s)
	}
	return numbers
}

func (o observation) sum(c column) float64 {
	sum := 0.0
	for _, v := range o.column(c) {
		sum += v
	}
	return sum
}
