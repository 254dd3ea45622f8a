package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// The show: what all data planes may pass together, and what comes.
const (
	limit    = 10_000 // requests per second
	replicas = 3
	planes   = 50
	tick     = 10 * time.Millisecond
)

// scene is a part of the show.
type scene struct {
	about string
	units int
	begin func(*show)
}

func scenes() []scene {
	return []scene{
		{"all assignments are new", 4, func(s *show) { s.skew(0, 2) }},
		{"twice the limit, 80 % of it at five data planes", 4, nil},
		{"now it comes to five others", 6, func(s *show) { s.skew(20, 2) }},
		{"replica 2 is killed", 10, (*show).killReplica},
		{"90 % of the limit", 4, func(s *show) { s.skew(20, 0.9) }},
	}
}

// show is what runs.
type show struct {
	planes    []*dataPlane
	processes []*process
	servers   []*grpc.ClientConn // of those that live
	all       []*grpc.ClientConn
}

// skew gives a tenth of the data planes, from one on, 80 % of a demand, in limits.
func (s *show) skew(from int, demand float64) {
	const hot = planes / 10
	for i := range planes {
		p := s.planes[(from+i)%planes]
		if p.demand = 0.2 * demand * limit / (planes - hot); i < hot {
			p.demand = 0.8 * demand * limit / hot
		}
	}
}

// killReplica kills the second server. Its data planes find out by themselves.
func (s *show) killReplica() {
	s.processes[1].kill()
	s.servers = []*grpc.ClientConn{s.servers[0], s.servers[2]}
}

// showQuotas runs the show and prints a line every two units.
func showQuotas(ctx context.Context, out io.Writer, unit time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store, err := startStore(ctx)
	if err != nil {
		return err
	}
	defer store.stop()
	s := &show{}
	defer s.stop()
	for i := range replicas {
		p, err := startReplica(ctx, fmt.Sprintf("replica-%d", i+1), store.address)
		if err != nil {
			return err
		}
		s.processes = append(s.processes, p)
		conn, err := dial(p.address)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, conn)
	}
	s.all = s.servers
	now := time.Now()
	for i := range planes {
		s.planes = append(s.planes, &dataPlane{rate: math.Inf(1), since: now, next: now.Add(time.Duration(i) * reportEvery / planes)})
	}
	fmt.Fprintf(out, "The quota service: %d servers divide %d requests per second among %d data planes,\nthrough %s.\n\n",
		replicas, limit, planes, store.about)
	fmt.Fprintf(out, "%6s %9s %9s %12s   %-12s  %s\n", "time", "asked/s", "passed/s", "of possible", "streams", "")
	begin := time.Now()
	for _, sc := range scenes() {
		if sc.begin != nil {
			sc.begin(s)
		}
		about := sc.about
		for range sc.units / 2 {
			asked, passed := s.run(ctx, 2*unit)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(out, "%5.0fs %9.0f %9.0f %11.1f%%   %-12s  %s\n", time.Since(begin).Seconds(), asked, passed,
				100*passed/min(asked, limit), s.streams(), about)
			about = ""
		}
	}
	return nil
}

// run lets requests come for a time. It returns how many came and passed per second.
func (s *show) run(ctx context.Context, d time.Duration) (asked, passed float64) {
	start := time.Now()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := start
	for last.Sub(start) < d {
		select {
		case <-ctx.Done():
			return asked, passed
		case <-ticker.C:
		}
		now := time.Now()
		for i, p := range s.planes {
			came, through := p.pass(now, now.Sub(last))
			asked, passed = asked+came, passed+through
			if !now.Before(p.next) {
				p.next = p.next.Add(reportEvery)
				p.report(ctx, now, s.servers, i)
			}
		}
		last = now
	}
	elapsed := last.Sub(start).Seconds()
	return asked / elapsed, passed / elapsed
}

// streams says how many data planes are at each of the servers.
func (s *show) streams() string {
	count := map[string]int{}
	for _, p := range s.planes {
		count[p.at()]++
	}
	var texts []string
	for _, conn := range s.all {
		texts = append(texts, fmt.Sprint(count[conn.Target()]))
	}
	return strings.Join(texts, " ")
}

// stop ends what runs.
func (s *show) stop() {
	for _, conn := range s.servers {
		_ = conn.Close()
	}
	for _, p := range s.processes {
		p.kill()
	}
}
