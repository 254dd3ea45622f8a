package main

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"
)

// fault is what happens to the server in the middle of a run.
type fault struct {
	name  string
	about string
	at    time.Duration // since the start of the calls
	lasts time.Duration // about; that is measured
	setUp setUp

	// happen returns when the fault is over.
	happen func(ctx context.Context, r *rig) error
}

// afterFault is how long a run goes on after a fault.
const afterFault = 4 * time.Second

func faults() []fault {
	const at = 5 * time.Second // rates of late are averages of about a second
	return []fault{
		{
			name: "killed", about: "killed, and restarted empty after 2 s", at: at, lasts: 2 * time.Second,
			happen: func(ctx context.Context, r *rig) error {
				if err := r.primary.kill(); err != nil {
					return err
				}
				if err := pause(ctx, 2*time.Second); err != nil {
					return err
				}
				return r.primary.run(ctx)
			},
		},
		{
			name: "stopped", about: "stopped for 5 s (SIGSTOP)", at: at, lasts: 5 * time.Second,
			happen: func(ctx context.Context, r *rig) error {
				return errors.Join(r.primary.signal(syscall.SIGSTOP), pause(ctx, 5*time.Second), r.primary.signal(syscall.SIGCONT))
			},
		},
		{
			name: "emptied", about: "emptied (FLUSHALL)", at: at,
			happen: func(ctx context.Context, r *rig) error {
				_, err := r.primary.do(ctx, "FLUSHALL")
				return err
			},
		},
		{
			name: "failed over", about: "killed, a sentinel promotes its replica", at: at, lasts: 2 * time.Second,
			setUp: setUp{replica: true},
			happen: func(ctx context.Context, r *rig) error {
				if err := r.primary.kill(); err != nil {
					return err
				}
				return await(ctx, func() error { return r.sentinel.expect(ctx, "sentinel", "address="+r.replica.address()) })
			},
		},
		{
			name: "slow", about: "answers come 50 ms later for 3 s", at: at, lasts: 3 * time.Second,
			setUp: setUp{proxy: true},
			happen: func(ctx context.Context, r *rig) error {
				r.proxy.setDelay(50 * time.Millisecond)
				defer r.proxy.setDelay(0)
				return pause(ctx, 3*time.Second)
			},
		},
	}
}

// setUp says what a run needs beside a server.
type setUp struct {
	replica bool // a replica, and a sentinel that promotes it
	proxy   bool // a proxy through which instances reach the server
}

// rig is the servers of a run.
type rig struct {
	primary, replica, sentinel *server
	proxy                      *proxy
}

func newRig(ctx context.Context, s setUp) (*rig, error) {
	r := &rig{}
	var err error
	if r.primary, err = startServer(ctx, nil); err != nil {
		return nil, err
	}
	if s.proxy {
		r.proxy, err = newProxy(ctx, r.primary.address())
	}
	if s.replica {
		err = r.addReplica(ctx)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// addReplica starts a replica and a sentinel, and waits until they know the server.
func (r *rig) addReplica(ctx context.Context) (err error) {
	if r.replica, err = startServer(ctx, r.primary); err != nil {
		return err
	}
	if err := await(ctx, func() error { return r.replica.expect(ctx, "replication", "master_link_status:up") }); err != nil {
		return err
	}
	if r.sentinel, err = startSentinel(ctx, r.primary); err != nil {
		return err
	}
	return await(ctx, func() error { return r.sentinel.expect(ctx, "sentinel", "slaves=1") })
}

// expect fails unless a section of what the server says of itself has a text in it.
func (s *server) expect(ctx context.Context, section, text string) error {
	info, err := s.info(ctx, section)
	if err == nil && !strings.Contains(info, text) {
		err = errors.New("the server does not report " + text)
	}
	return err
}

// addresses returns where instances find the server, and its name if these are sentinels.
func (r *rig) addresses() (addresses []string, sentinel string) {
	switch {
	case r.sentinel != nil:
		return []string{r.sentinel.address()}, masterName
	case r.proxy != nil:
		return []string{r.proxy.address()}, ""
	default:
		return []string{r.primary.address()}, ""
	}
}

func (r *rig) stop() {
	r.proxy.stop()
	r.sentinel.stop()
	r.replica.stop()
	r.primary.stop()
}
