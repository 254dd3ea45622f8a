package scenario

import (
	"math"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// observation is what became of the calls of a resource, or of all together.
type observation struct {
	seconds  []simulate.Second
	waits    []float64      // of the calls that passed, by arrival
	blockers map[string]int // how many calls each rule refused
	rules    []string       // all there are
}

// observe returns what a simulation tells of a resource, or of all with "".
func observe(result simulate.Result, resource string, set rules.Set) observation {
	o := observation{blockers: make(map[string]int)}
	for key := range set.Keys() {
		o.rules = append(o.rules, key.Name)
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
			o.blockers[e.Rule]++
		}
	}
	return o
}

// add adds a row to those of its second. Of ceilings it keeps the lowest.
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
	if sum.Ceiling == nil || s.Ceiling != nil && *s.Ceiling < *sum.Ceiling {
		sum.Ceiling = s.Ceiling
	}
}

// column is one of the numbers that each second has.
type column struct {
	name string
	of   func(simulate.Second) float64 // NaN where there is none
}

func columns() []column {
	return []column{
		{"offered", func(s simulate.Second) float64 { return float64(s.Offered) }},
		{"passed", func(s simulate.Second) float64 { return float64(s.Passed) }},
		{"blocked", func(s simulate.Second) float64 { return float64(s.Blocked) }},
		{"waited", func(s simulate.Second) float64 { return float64(s.Waited) }},
		{"ceiling", func(s simulate.Second) float64 {
			if s.Ceiling == nil {
				return math.NaN()
			}
			return *s.Ceiling
		}},
	}
}

func (c column) unit() unit {
	u := counts()
	u.none = c.name == "ceiling"
	return u
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
