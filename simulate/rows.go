package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// rows are the rows of a result while it is made.
type rows struct {
	resources []string   // sorted
	origins   [][]string // of the calls of each resource
	seconds   []Second   // by second, then by resource

	inFlight      []int             // calls of each resource under way
	responseTimes [][]time.Duration // of the calls of each resource that ended in the second ending
	ending        int
}

func newRows(load Load, seconds int) *rows {
	r := &rows{resources: resourcesOf(load)}
	r.origins = make([][]string, len(r.resources))
	for _, s := range load.Streams {
		if origins := &r.origins[r.indexOf(s.Resource)]; !slices.Contains(*origins, s.Origin) {
			*origins = append(*origins, s.Origin)
		}
	}
	r.inFlight = make([]int, len(r.resources))
	r.responseTimes = make([][]time.Duration, len(r.resources))
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

// begin notes the ceilings for the second that begins at t.
func (r *rows) begin(instances []*instance, t time.Duration) {
	for i, resource := range r.resources {
		lowest := math.Inf(1)
		for _, origin := range r.origins[i] {
			for _, ceiling := range ceilings(instances, resource, core.Origin(origin)) {
				lowest = min(lowest, ceiling)
			}
		}
		if !math.IsInf(lowest, 1) {
			r.at(t, i).Ceiling = &lowest
		}
	}
}

// ceilings returns how many tokens a second each rule that applies to a call allows, all
// instances together.
func ceilings(instances []*instance, resource string, options ...core.Option) map[rule.Key]float64 {
	sums := make(map[rule.Key]float64)
	for _, i := range instances {
		for _, of := range i.engine.Quotas(resource, options...) {
			switch {
			case of.Quota.Prepaid: // it has no rate
			case of.Rule.Fleet():
				sums[of.Rule.Key()] = of.Quota.Limit / of.Quota.Window.Seconds()
			default:
				sums[of.Rule.Key()] += of.Quota.Effective / of.Quota.Window.Seconds()
			}
		}
	}
	return sums
}

// pass counts a call that is let through at t after a wait.
func (r *rows) pass(t time.Duration, resource int, wait time.Duration) {
	if row := r.at(t, resource); row != nil {
		row.Passed++
		if wait > 0 {
			row.Waited++
		}
	}
}

// beginCall counts a call that is under way from t on, if it has a length.
func (r *rows) beginCall(t time.Duration, resource int, hasLength bool) {
	if hasLength {
		r.inFlight[resource]++
		r.sample(t, resource)
	}
}

// sample notes how many calls of the resource are under way at t.
func (r *rows) sample(t time.Duration, resource int) {
	if row := r.at(t, resource); row != nil {
		row.InFlight = max(row.InFlight, r.inFlight[resource])
	}
}

// sampleAll notes how many calls of each resource are under way at t.
func (r *rows) sampleAll(t time.Duration) {
	for i := range r.resources {
		r.sample(t, i)
	}
}

// endCall counts a call that ended at t.
func (r *rows) endCall(t time.Duration, resource int, responseTime time.Duration, failed, hasLength bool) {
	if hasLength {
		r.inFlight[resource]--
	}
	row := r.at(t, resource)
	if row == nil {
		return
	}
	if row.Completed++; failed {
		row.Failed++
	} else {
		row.Good++
	}
	if row.Second != r.ending {
		r.summarise()
		r.ending = row.Second
	}
	r.responseTimes[resource] = append(r.responseTimes[resource], responseTime)
}

// summarise fills in the response times of the second ending.
func (r *rows) summarise() {
	for i, times := range r.responseTimes {
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		row := &r.seconds[r.ending*len(r.resources)+i]
		row.RTP50, row.RTP99 = pointerTo(seconds(percentile(times, 50))), pointerTo(seconds(percentile(times, 99)))
		r.responseTimes[i] = times[:0]
	}
}

// percentile returns the least of the sorted times that so many percent of them
// do not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}
