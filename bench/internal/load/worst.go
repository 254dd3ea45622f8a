package load

import (
	"cmp"
	"slices"
	"time"
)

// WorstCalendarSecond returns the most passes that began and ended in one second of
// the calendar.
func WorstCalendarSecond(passes []Pass) (most int) {
	seconds := make(map[int64]int)
	for _, pass := range passes {
		if second := pass.Before.Time().Unix(); second == pass.After.Time().Unix() {
			seconds[second]++
			most = max(most, seconds[second])
		}
	}
	return most
}

// WorstSecond returns the most passes that began and ended in one second, wherever it
// begins.
func WorstSecond(passes []Pass) (most int) {
	passes = slices.SortedFunc(slices.Values(passes), func(a, b Pass) int { return cmp.Compare(a.Before, b.Before) })
	for i, first := range passes {
		end, count := first.Before.Add(time.Second), 0
		for _, pass := range passes[i:] {
			if pass.Before >= end {
				break
			}
			if pass.After < end {
				count++
			}
		}
		most = max(most, count)
	}
	return most
}
