package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/signal/internal/procfs"
)

// ticks is what a processor has counted since it was switched on, in units of 10 ms.
type ticks struct{ busy, idle float64 }

// processors returns the counts of the processors that are switched on.
func (r *Reader) processors() (map[int]ticks, error) {
	text, err := procfs.Read(r.root, "proc/stat")
	if err != nil {
		return nil, err
	}
	all, err := parseStat(text)
	if err != nil {
		return nil, fmt.Errorf("read /proc/stat: %w", err)
	}
	return all, nil
}

// parseStat reads the lines of processors in /proc/stat, such as
//
//	cpu0 1779085 139685 372347 1062565 18584 0 2942 29004 0 0
//
// with the times in user mode, at low priority, in the kernel, idle, waiting for devices, in
// interrupts of two sorts, and stolen by the hypervisor. Old kernels have fewer. Those of
// guests follow; the time in user mode has them already.
func parseStat(text string) (map[int]ticks, error) {
	all := map[int]ticks{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "cpu")
		if !ok {
			break // the processors come first
		}
		words := strings.Fields(rest)
		if len(words) == 0 || rest[0] == ' ' {
			continue // the sum of all
		}
		number, err := strconv.ParseUint(words[0], 10, 31)
		if err != nil || len(words) < 5 {
			return nil, fmt.Errorf("%.60q is no line of a processor", line)
		}
		var t ticks
		for i, word := range words[1:min(len(words), 9)] {
			n, err := procfs.Uint(word)
			if err != nil {
				return nil, err
			}
			if i == 3 || i == 4 {
				t.idle += float64(n)
			} else {
				t.busy += float64(n)
			}
		}
		all[int(number)] = t
	}
	if len(all) == 0 {
		return nil, errors.New("it has no processors")
	}
	return all, nil
}

// cpuRange is a range of processors, such as 0-3, with both ends.
type cpuRange struct{ first, last int }

// affinity returns the processors that the process may run on, by its CPU set (cpuset) and
// affinity (taskset); nil if the system does not say. Those that are switched off may be
// among them.
func (r *Reader) affinity() ([]cpuRange, error) {
	text, err := procfs.Read(r.root, "proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			ranges, err := parseRanges(strings.TrimSpace(list))
			if err != nil {
				return nil, fmt.Errorf("read /proc/self/status: Cpus_allowed_list: %w", err)
			}
			return ranges, nil
		}
	}
	return nil, nil
}

// parseRanges parses a list of processors, such as 0-3,7.
func parseRanges(list string) (ranges []cpuRange, err error) {
	for text := range strings.SplitSeq(list, ",") {
		low, high, ok := strings.Cut(text, "-")
		if !ok {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 31)
		last, err2 := strconv.ParseUint(high, 10, 31)
		if err := errors.Join(err1, err2); err != nil || first > last {
			return nil, fmt.Errorf("%.40q is no range of processors", text)
		}
		ranges = append(ranges, cpuRange{int(first), int(last)})
	}
	return ranges, nil
}

// usable returns those of the processors that are allowed.
//
// In a container whose /proc/stat is made for it (lxcfs), the processors there are the
// container's own and numbered anew: then there are as many as are allowed, or none has the
// right number, and all count.
func usable(all map[int]ticks, allowed []cpuRange) map[int]ticks {
	count := int64(0)
	for _, a := range allowed {
		count += int64(a.last) - int64(a.first) + 1
	}
	if count == 0 || count == int64(len(all)) {
		return all
	}
	some := make(map[int]ticks, count)
	for number, t := range all {
		for _, a := range allowed {
			if a.first <= number && number <= a.last {
				some[number] = t
				break
			}
		}
	}
	if len(some) == 0 {
		return all
	}
	return some
}
