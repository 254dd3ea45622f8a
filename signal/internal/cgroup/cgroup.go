// Package cgroup reads how much of the CPU time and memory of its container the process
// uses, from the cgroups of Linux, version 1 and 2.
//
// A cgroup may have a limit, and so may each cgroup above it, which its other children then
// share. What counts is the limit of which the greatest share is used: that one is reached
// first.
package cgroup

import (
	"errors"
	"io/fs"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/signal/internal/share"
)

// resolveEvery is how often the cgroups of the process are looked up anew: it may be moved
// to others.
const resolveEvery = 10 * time.Second

// Reader reads the cgroups of the process. It is not safe for concurrent use.
type Reader struct {
	root   fs.FS
	cpu    location
	acct   location // of v1, which counts CPU time in a hierarchy that may be another one
	memory location

	readings share.Readings
	limits   map[string]*cpuLimit // cgroups with a quota, by folder
	err      error
}

// New returns a reader of the files below root, which is / in production.
func New(root fs.FS) *Reader {
	return &Reader{
		root:   root,
		cpu:    location{controller: "cpu"},
		acct:   location{controller: "cpuacct"},
		memory: location{controller: "memory"},
		limits: map[string]*cpuLimit{},
	}
}

// location remembers the cgroups of the process for a controller.
type location struct {
	controller string
	found      hierarchy
	known      bool
	at         clock.Instant
}

// get returns the cgroups, and looks them up if that was too long ago.
func (l *location) get(root fs.FS, now clock.Instant) (hierarchy, error) {
	if l.known && now.Sub(l.at) < resolveEvery {
		return l.found, nil
	}
	found, err := resolve(root, l.controller)
	if err != nil {
		l.known = false
		return hierarchy{}, err
	}
	l.found, l.known, l.at = found, true, now
	return found, nil
}

// exists takes "there is no such file" for "there is no limit": a controller that is not
// enabled for a cgroup has no files there.
func exists(err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
