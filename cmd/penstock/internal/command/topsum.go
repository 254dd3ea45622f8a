package command

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

// sumResources adds up what several services say of resources of the same name.
func sumResources(pages []inspect.Resources) []inspect.Resource {
	sums := []inspect.Resource{}
	index := make(map[string]int)
	for _, page := range pages {
		for _, of := range page.Resources {
			i, known := index[of.Name]
			if !known {
				index[of.Name] = len(sums)
				sums = append(sums, of)
				continue
			}
			addResource(&sums[i], &of)
		}
	}
	return sums
}

func addResource(sum, more *inspect.Resource) {
	sum.InFlight += more.InFlight
	sum.Waiting += more.Waiting
	addCalls(&sum.Second, &more.Second)
	addCalls(&sum.Minute, &more.Minute)
	sum.ResponseTimes = slower(sum.ResponseTimes, more.ResponseTimes)
	sum.Seconds = addSeconds(sum.Seconds, more.Seconds)
	sum.MoreRules = max(sum.MoreRules, more.MoreRules)
	for _, r := range more.Rules {
		i := slices.IndexFunc(sum.Rules, func(s inspect.ResourceRule) bool { return s.Kind == r.Kind && s.Rule == r.Rule })
		if i < 0 {
			sum.Rules = append(sum.Rules, r)
			continue
		}
		s := &sum.Rules[i]
		s.Refused += r.Refused
		s.WouldBlock += r.WouldBlock
		s.Second, s.Minute, s.Seconds = addKnown(s.Second, r.Second), addKnown(s.Minute, r.Minute), nil
	}
	slices.SortStableFunc(sum.Rules, func(a, b inspect.ResourceRule) int { return cmp.Compare(known(b.Minute), known(a.Minute)) })
}

func known(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

// addKnown adds numbers of which one may not be known: then the sum is at least the other one.
func addKnown(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

func addCalls(sum, more *inspect.Calls) {
	if all := sum.Completed + more.Completed; all > 0 {
		sum.MeanResponseTime = (sum.MeanResponseTime*float64(sum.Completed) + more.MeanResponseTime*float64(more.Completed)) / float64(all)
	}
	sum.Passed += more.Passed
	sum.Refused += more.Refused
	sum.Waited += more.Waited
	sum.Completed += more.Completed
	sum.Failed += more.Failed
	sum.MaxResponseTime = max(sum.MaxResponseTime, more.MaxResponseTime)
	sum.MaxInFlight += more.MaxInFlight
}

// slower returns the percentiles of the slower service: those of all calls cannot be told from them.
func slower(a, b *inspect.ResponseTimes) *inspect.ResponseTimes {
	switch {
	case a == nil:
		return b
	case b == nil, a.P99 >= b.P99:
		return a
	}
	return b
}

// addSeconds adds up seconds by the calendar. Those of the service whose clock is ahead count.
func addSeconds(a, b *inspect.Seconds) *inspect.Seconds {
	switch {
	case a == nil || len(a.Passed) == 0:
		return b
	case b == nil || len(b.Passed) == 0:
		return a
	case a.Start.Before(b.Start):
		a, b = b, a
	}
	sum := &inspect.Seconds{Start: a.Start, Passed: slices.Clone(a.Passed), Refused: slices.Clone(a.Refused)}
	later := int(a.Start.Sub(b.Start) / time.Second)
	for i := range sum.Passed {
		if j := i + later; j >= 0 && j < len(b.Passed) && j < len(b.Refused) && i < len(sum.Refused) {
			sum.Passed[i] += b.Passed[j]
			sum.Refused[i] += b.Refused[j]
		}
	}
	return sum
}

// sortResources sorts as a service does.
func sortResources(list []inspect.Resource, by inspect.ResourceSort) {
	slices.SortFunc(list, func(a, b inspect.Resource) int {
		refused, passed := cmp.Compare(b.Minute.Refused, a.Minute.Refused), cmp.Compare(b.Minute.Passed, a.Minute.Passed)
		name := cmp.Compare(a.Name, b.Name)
		switch by {
		case inspect.SortName:
			return name
		case inspect.SortPassed:
			return cmp.Or(passed, refused, name)
		case inspect.SortP99:
			return cmp.Or(cmp.Compare(p99(&b), p99(&a)), name)
		case inspect.SortInFlight:
			return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(b.Waiting, a.Waiting), name)
		default:
			return cmp.Or(refused, passed, name)
		}
	})
}

func p99(of *inspect.Resource) float64 {
	if of.ResponseTimes == nil {
		return -1
	}
	return of.ResponseTimes.P99
}
