package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/signal/internal/procfs"
	"github.com/penstock-go/penstock/signal/internal/share"
)

// CPU is how much of their CPU time cgroups use. Shares are means of the last second, from
// 0 to 1, and 0 after the first reading: it takes two to count.
type CPU struct {
	Limited   bool    // some cgroup has a quota of less than all processors
	Used      float64 // share of the quota that is used, if Limited
	Throttled float64 // share of time in which threads were stopped because a quota was used up
}

// cpuLimit is what is known of a cgroup with a quota.
type cpuLimit struct {
	quota           float64 // processors
	at              clock.Instant
	begun           bool
	usage           float64 // processor seconds since the cgroup was made
	stopped         float64 // seconds in which its threads were stopped
	used, throttled share.Mean
}

// CPU returns what the cgroups of the process use of their quotas. A quota that leaves the
// process all processors is none.
func (r *Reader) CPU(now clock.Instant, processors int) (CPU, error) {
	if r.readings.Due(now) {
		if r.err = r.readCPU(now); r.err != nil {
			r.cpu.known, r.acct.known = false, false // the process may have been moved
		}
	}
	if r.err != nil {
		return CPU{}, r.err
	}
	var result CPU
	for _, limit := range r.limits {
		result.Throttled = max(result.Throttled, limit.throttled.Value())
		if limit.quota < float64(processors) {
			result.Limited, result.Used = true, max(result.Used, limit.used.Value())
		}
	}
	return result, nil
}

// readCPU counts for the cgroups that have a quota, and forgets all others.
func (r *Reader) readCPU(now clock.Instant) error {
	tree, err := r.cpu.get(r.root, now)
	if err != nil {
		return err
	}
	limits := make(map[string]*cpuLimit, len(r.limits))
	for _, group := range tree.groups {
		quota, err := r.quota(tree, group)
		if err != nil {
			return err
		}
		if math.IsInf(quota, 1) {
			continue
		}
		usage, stopped, err := r.usage(tree, group, now)
		if err != nil {
			return err
		}
		folder := tree.file(group, "")
		limit := r.limits[folder]
		if limit == nil {
			limit = &cpuLimit{}
		}
		limit.add(now, usage, stopped, quota)
		limits[folder] = limit
	}
	r.limits = limits
	return nil
}

// add counts what was used since the reading before. A counter that has gone back is that
// of another cgroup with the name of the first: counting begins anew.
func (l *cpuLimit) add(now clock.Instant, usage, stopped, quota float64) {
	if l.begun && usage >= l.usage && stopped >= l.stopped {
		elapsed := now.Sub(l.at).Seconds()
		l.used.Add(l.at, now, usage-l.usage, quota*elapsed)
		l.throttled.Add(l.at, now, min(stopped-l.stopped, elapsed), elapsed)
	}
	l.quota, l.at, l.begun, l.usage, l.stopped = quota, now, true, usage, stopped
}

// quota returns how many processors a cgroup may use: infinity without a quota.
func (r *Reader) quota(tree hierarchy, group string) (float64, error) {
	if !tree.v2 {
		return r.quotaV1(tree, group)
	}
	name := tree.file(group, "cpu.max")
	text, err := procfs.Read(r.root, name)
	if ok, err := exists(err); !ok {
		return math.Inf(1), err
	}
	words := strings.Fields(text) // "max 100000" or "150000 100000"
	if len(words) != 2 {
		return 0, fmt.Errorf("read /%s: %.40q is no quota and period", name, text)
	}
	period, err := procfs.Uint(words[1])
	if err != nil {
		return 0, fmt.Errorf("read /%s: %w", name, err)
	}
	if words[0] == "max" {
		return math.Inf(1), nil
	}
	quota, err := procfs.Uint(words[0])
	if err != nil {
		return 0, fmt.Errorf("read /%s: %w", name, err)
	}
	return processorsOf(name, quota, period)
}

func (r *Reader) quotaV1(tree hierarchy, group string) (float64, error) {
	name := tree.file(group, "cpu.cfs_quota_us")
	text, err := procfs.Read(r.root, name)
	if ok, err := exists(err); !ok {
		return math.Inf(1), err
	}
	if strings.TrimSpace(text) == "-1" {
		return math.Inf(1), nil
	}
	quota, err := procfs.Uint(text)
	if err != nil {
		return 0, fmt.Errorf("read /%s: %w", name, err)
	}
	period, err := procfs.ReadUint(r.root, tree.file(group, "cpu.cfs_period_us"))
	if err != nil {
		return 0, err
	}
	return processorsOf(name, quota, period)
}

func processorsOf(name string, quota, period uint64) (float64, error) {
	if quota == 0 || period == 0 {
		return 0, fmt.Errorf("read /%s: a quota of %d in a period of %d cannot be", name, quota, period)
	}
	return float64(quota) / float64(period), nil
}

// usage returns the processor seconds that a cgroup has used, and the seconds in which its
// threads were stopped. Those are counted for each processor.
func (r *Reader) usage(tree hierarchy, group string, now clock.Instant) (used, stopped float64, err error) {
	name, key, unit := tree.file(group, "cpu.stat"), "throttled_time", 1e9
	if tree.v2 {
		key, unit = "throttled_usec", 1e6
	}
	text, err := procfs.Read(r.root, name)
	if err != nil {
		return 0, 0, err
	}
	throttled, err := procfs.Field(text, key)
	if err != nil {
		return 0, 0, fmt.Errorf("read /%s: %w", name, err)
	}
	var usage uint64
	if tree.v2 {
		usage, err = procfs.Field(text, "usage_usec")
	} else {
		usage, err = r.usageV1(group, now)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read /%s: %w", name, err)
	}
	return float64(usage) / unit, float64(throttled) / unit, nil
}

// usageV1 returns the nanoseconds that a cgroup has used, which the controller cpuacct
// counts, usually in the same hierarchy.
func (r *Reader) usageV1(group string, now clock.Instant) (uint64, error) {
	tree, err := r.acct.get(r.root, now)
	if err != nil {
		return 0, err
	}
	if tree.v2 || len(tree.groups) == 0 {
		return 0, errors.New("there is a quota, but the controller cpuacct, which counts CPU time, is not mounted")
	}
	return procfs.ReadUint(r.root, tree.file(group, "cpuacct.usage"))
}
