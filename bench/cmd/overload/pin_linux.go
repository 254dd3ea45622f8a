package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// startOn starts a command on one processor: it inherits the affinity of the thread that
// starts it.
func startOn(processor int, command *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("reading the affinity: %w", err)
	}
	one.Set(processor)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("choosing processor %d: %w", processor, err)
	}
	return firstError(command.Start(), unix.SchedSetaffinity(0, &before))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// cgroup is a control group that bounds the processor time of processes.
type cgroup struct{ dir string }

// newCgroup makes a control group that may use the quota of processor time in each period.
func newCgroup(quota, period time.Duration) (*cgroup, error) {
	root, limits := "/sys/fs/cgroup/cpu", [][2]string{
		{"cpu.cfs_period_us", fmt.Sprint(period.Microseconds())},
		{"cpu.cfs_quota_us", fmt.Sprint(quota.Microseconds())},
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		root, limits = "/sys/fs/cgroup", [][2]string{{"cpu.max", fmt.Sprint(quota.Microseconds(), period.Microseconds())}}
	}
	c := &cgroup{filepath.Join(root, fmt.Sprint("penstock-bench-", os.Getpid()))}
	if err := os.Mkdir(c.dir, 0o750); err != nil {
		return nil, err
	}
	for _, limit := range limits {
		if err := c.write(limit[0], limit[1]); err != nil {
			c.remove()
			return nil, err
		}
	}
	return c, nil
}

func (c *cgroup) write(name, text string) error {
	return os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600)
}

// add puts a process under the quota.
func (c *cgroup) add(pid int) error { return c.write("cgroup.procs", fmt.Sprint(pid)) }

// remove removes the group, whose processes have ended.
func (c *cgroup) remove() {
	if c != nil {
		_ = os.Remove(c.dir)
	}
}
