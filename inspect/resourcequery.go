package inspect

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

const (
	// maxResources is how many resources a page has at the most.
	maxResources = 1000

	// defaultResources is how many it has unless the request says.
	defaultResources = 100

	// maxSecondsResources is how many it has at the most when each shows its seconds.
	maxSecondsResources = 100
)

// ResourceSort is the order of resources in a page. Those that are equal in it come by name.
type ResourceSort string

// The orders. Numbers come with the greatest first.
const (
	SortRefused  ResourceSort = "refused" // calls refused in the last minute, then those that passed; the default
	SortPassed   ResourceSort = "passed"  // calls that passed in the last minute, then those refused
	SortName     ResourceSort = "name"
	SortP99      ResourceSort = "p99"      // the 99th percentile of response times
	SortInFlight ResourceSort = "inFlight" // calls under way, then those that wait
)

// ResourceQuery says which resources somebody wants to see. The zero value selects all, those that
// refuse most first.
type ResourceQuery struct {
	Match   string // a pattern of names as in rules; "" selects all
	Sort    ResourceSort
	Limit   int  // of the page, at most 1000, or 100 with Seconds; 0 for 100
	Offset  int  // how many resources come before the page
	Seconds bool // whether each resource has its last minute by the second
}

// Validate returns what is wrong with the query, or nil.
func (q ResourceQuery) Validate() error {
	if most := q.most(); q.Limit < 0 || q.Limit > most {
		return fmt.Errorf("inspect: limit is %d: it is a number from 1 to %d", q.Limit, most)
	}
	return (&resourceFilter{ResourceQuery: q}).complete()
}

// most is how many resources a page has at the most.
func (q *ResourceQuery) most() int {
	if q.Seconds {
		return maxSecondsResources
	}
	return maxResources
}

// Query returns the query as [Handler] takes it.
func (q ResourceQuery) Query() url.Values {
	query := make(url.Values)
	if q.Match != "" {
		query.Set("match", q.Match)
	}
	if q.Sort != "" {
		query.Set("sort", string(q.Sort))
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Offset != 0 {
		query.Set("offset", strconv.Itoa(q.Offset))
	}
	if q.Seconds {
		query.Set("seconds", "true")
	}
	return query
}

// resourceFilter is a [ResourceQuery] that was checked.
type resourceFilter struct {
	ResourceQuery
	pattern *match.Pattern // nil for all names
}

func (f *resourceFilter) matches(name string) bool {
	return f.pattern == nil || f.pattern.Matches(name)
}

// parseResourceQuery reads which resources a request asks for; known are the parameters that the
// request may have.
func parseResourceQuery(query string, known ...string) (f resourceFilter, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return f, fmt.Errorf("inspect: %w", err)
	}
	if err := checkParameters(values, known...); err != nil {
		return f, err
	}
	f.Match, f.Sort = values.Get("match"), ResourceSort(values.Get("sort"))
	if values.Has("seconds") {
		if f.Seconds, err = strconv.ParseBool(values.Get("seconds")); err != nil {
			return f, fmt.Errorf("inspect: seconds is %s: it is true or false", rule.Quote(values.Get("seconds")))
		}
	}
	most := f.most()
	if f.Limit, err = numberIn(values, "limit", min(defaultResources, most), 1, most); err != nil {
		return f, err
	}
	if f.Offset, err = numberIn(values, "offset", 0, 0, 1<<30); err != nil {
		return f, err
	}
	return f, f.complete()
}

// complete checks the order and the pattern.
func (f *resourceFilter) complete() error {
	if f.Sort == "" {
		f.Sort = SortRefused
	}
	switch f.Sort {
	case SortRefused, SortPassed, SortName, SortP99, SortInFlight:
	default:
		return fmt.Errorf("inspect: sort is %s: it is one of refused, passed, name, p99, inFlight", rule.Quote(string(f.Sort)))
	}
	if f.Match != "" {
		pattern, err := match.Compile(f.Match)
		if err != nil {
			return fmt.Errorf("inspect: match: %w", err)
		}
		f.pattern = &pattern
	}
	return nil
}

// numberIn returns a parameter that is a number within bounds.
func numberIn(values url.Values, name string, otherwise, least, most int) (int, error) {
	if !values.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(values.Get(name))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("inspect: %s is %s: it is a number from %d to %d", name, rule.Quote(values.Get(name)), least, most)
	}
	return n, nil
}
