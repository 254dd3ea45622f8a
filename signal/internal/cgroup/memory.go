package cgroup

import (
	"fmt"
	"math"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/signal/internal/procfs"
)

// Memory returns the share of the memory limits of the cgroups that is in use, without the
// page cache that the kernel can drop, and false if no limit is below that of the machine.
//
// Reclaimable returns the bytes that the process itself frees before it reaches a limit:
// they are in use only as long as nobody needs them.
func (r *Reader) Memory(now clock.Instant, machine uint64, reclaimable func(limit uint64) uint64) (used float64, limited bool, err error) {
	defer func() {
		if err != nil {
			r.memory.known = false // the process may have been moved
		}
	}()
	tree, err := r.memory.get(r.root, now)
	if err != nil {
		return 0, false, err
	}
	for _, group := range tree.groups {
		limit, err := r.memoryLimit(tree, group)
		if err != nil {
			return 0, false, err
		}
		if limit >= machine {
			continue
		}
		bytes, err := r.memoryUse(tree, group)
		if err != nil {
			return 0, false, err
		}
		bytes -= min(bytes, reclaimable(limit))
		used, limited = max(used, min(float64(bytes)/float64(max(limit, 1)), 1)), true
	}
	return used, limited, nil
}

// memoryLimit returns the limit of a cgroup in bytes. In v2, what is above memory.high is
// reclaimed by slowing the process down, so that this is a limit too.
func (r *Reader) memoryLimit(tree hierarchy, group string) (uint64, error) {
	names := []string{"memory.limit_in_bytes"}
	if tree.v2 {
		names = []string{"memory.max", "memory.high"}
	}
	limit := uint64(math.MaxUint64)
	for _, file := range names {
		name := tree.file(group, file)
		text, err := procfs.Read(r.root, name)
		if ok, err := exists(err); err != nil {
			return 0, err
		} else if !ok || strings.TrimSpace(text) == "max" {
			continue
		}
		n, err := procfs.Uint(text)
		if err != nil {
			return 0, fmt.Errorf("read /%s: %w", name, err)
		}
		limit = min(limit, n)
	}
	return limit, nil
}

// memoryUse returns the bytes that a cgroup uses, without the page cache that was not used
// of late.
func (r *Reader) memoryUse(tree hierarchy, group string) (uint64, error) {
	current, cache := "memory.usage_in_bytes", "total_inactive_file"
	if tree.v2 {
		current, cache = "memory.current", "inactive_file"
	}
	used, err := procfs.ReadUint(r.root, tree.file(group, current))
	if err != nil {
		return 0, err
	}
	inactive, err := procfs.ReadField(r.root, tree.file(group, "memory.stat"), cache)
	if err != nil {
		return 0, err
	}
	return used - min(inactive, used), nil
}
