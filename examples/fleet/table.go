package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// counts is what became of the calls, by the second.
type counts struct {
	mu      sync.Mutex
	start   time.Time
	seconds []second
}

// second is what became of the calls of one second.
type second struct {
	passed  [instances]int
	refused int
}

func (s second) total() (sum int) {
	for _, n := range s.passed {
		sum += n
	}
	return sum
}

// begin says when the first second begins.
func (c *counts) begin(start time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = start
}

// add counts a call that came at an instant.
func (c *counts) add(at time.Time, instance int, passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := int(max(0, at.Sub(c.start)) / time.Second)
	for len(c.seconds) <= i {
		c.seconds = append(c.seconds, second{})
	}
	if passed {
		c.seconds[i].passed[instance]++
	} else {
		c.seconds[i].refused++
	}
}

// second returns what became of the calls of a second.
func (c *counts) second(i int) second {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i >= len(c.seconds) {
		return second{}
	}
	return c.seconds[i]
}

// passed returns how many calls passed from one second up to another one.
func (c *counts) passed(from, until int) (sum int) {
	for i := from; i < until; i++ {
		sum += c.second(i).total()
	}
	return sum
}

func printHead(out io.Writer) {
	fmt.Fprint(out, "second ")
	for i := range instances {
		fmt.Fprintf(out, "  instance-%d", i+1)
	}
	fmt.Fprintf(out, "  all  refused   passed of the limit of %.0f\n", limit)
}

func printSecond(out io.Writer, i int, s second) {
	fmt.Fprintf(out, "%6d ", i)
	for _, n := range s.passed {
		fmt.Fprintf(out, "%12d", n)
	}
	bar := strings.Repeat("█", int(float64(s.total())*20/limit))
	fmt.Fprintf(out, "%5d%9d   %-20s %3.0f %%\n", s.total(), s.refused, bar, 100*float64(s.total())/limit)
}

// The most that may pass beyond the limit, as a share of what the limit lets pass in a
// second: burst, which is limit/buckets of a sliding window, once at the start and once
// because the server comes back with nothing in it; what leases of up to 200 ms hold; and
// what instances owe.
const tolerance = 0.6

// errSeen is that of a show in which something else was seen than the limit promises.
var errSeen = errors.New("not what the limit promises")

// summarize prints what passed before, in and after the outage, and returns an error, errSeen, if that
// is more than the limit promises, or nothing.
func summarize(out io.Writer, p plan, c *counts) error {
	var all []error
	fmt.Fprintln(out)
	for _, part := range []struct {
		name        string
		from, until int
	}{{"before", 0, p.killed}, {"without a server", p.killed, p.restarted}, {"after", p.restarted, p.seconds}} {
		passed, allowed := c.passed(part.from, part.until), limit*float64(part.until-part.from)
		fmt.Fprintf(out, "%-18s %4d calls passed in %d s: %3.0f %% of the limit\n",
			part.name+":", passed, part.until-part.from, 100*float64(passed)/allowed)
		switch {
		case passed == 0:
			all = append(all, fmt.Errorf("%w: %s: no call passed", errSeen, part.name))
		case float64(passed) > allowed+tolerance*limit:
			all = append(all, fmt.Errorf("%w: %s: %d calls passed", errSeen, part.name, passed))
		}
	}
	return errors.Join(all...)
}
