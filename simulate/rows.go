package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
)

// rows are the rows of a result while it is made.
type rows struct {
	resources []string   // sorted
	origins   [][]string // of the calls of each resource
	seconds   []Second   // by second, then by resource
}

func newRows(load Load, seconds int) *rows {
	r := &rows{resources: resourcesOf(load)}
	r.origins = make([][]string, len(r.resources))
	for _, s := range load.Streams {
		if origins := &r.origins[r.indexOf(s.Resource)]; !slices.Contains(*origins, s.Origin) {
			*origins = append(*origins, s.Origin)
		}
	}
	r.seconds = make([]Second, 0, seconds*len(r.resources))
	for second := range seconds {
		for _, resource := range r.resources {
			r.seconds = append(r.seconds, Second{Second: second, Resource: resource})
		}
	}
	return r
}

// indexOf returns the place of a resource within each second.
func (r *rows) indexOf(resource string) int {
	i, _ := slices.BinarySearch(r.resources, resource)
	return i
}

// at returns the row of a resource that a time falls in, nil after the last.
func (r *rows) at(t time.Duration, resource int) *Second {
	i := int(t/time.Second)*len(r.resources) + resource
	if i >= len(r.seconds) {
		return nil
	}
	return &r.seconds[i]
}

// begin notes the ceilings of the second that begins at t.
func (r *rows) begin(engine *core.Engine, t time.Duration) {
	for i, resource := range r.resources {
		lowest := math.Inf(1)
		for _, origin := range r.origins[i] {
			for _, of := range engine.Quotas(resource, core.Origin(origin)) {
				lowest = min(lowest, of.Quota.Effective/of.Quota.Window.Seconds())
			}
		}
		if !math.IsInf(lowest, 1) {
			r.at(t, i).Ceiling = &lowest
		}
	}
}

// pass counts a call that is let through after a wait.
func (s *Second) pass(wait time.Duration) {
	s.Passed++
	if wait > 0 {
		s.Waited++
	}
}
