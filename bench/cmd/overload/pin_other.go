//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

var errNotLinux = errors.New("processes can only be put on one processor on Linux")

func startOn(int, *exec.Cmd) error { return errNotLinux }

// cgroup is a control group, which only Linux has.
type cgroup struct{}

func newCgroup(_, _ time.Duration) (*cgroup, error) { return nil, errNotLinux }

func (*cgroup) add(int) error { return errNotLinux }

func (*cgroup) remove() {}
