package exchange

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// How long a member waits between two probes while the backend does not answer.
const (
	minProbeWait = 50 * time.Millisecond
	MaxProbeWait = 200 * time.Millisecond
)

// MaxProbed is how many limits of a kind are looked at to find one of each partition.
const MaxProbed = 64

// ReturnTime is within what time after an outage all instances have paid.
const ReturnTime = 2 * MaxProbeWait

// tellInterval is how often an outage is logged at most: a backend that answers now and then has many.
const tellInterval = 10 * time.Second

// steadyTime is for how long a backend has to answer before it is taken for one that does. An outage that begins sooner
// ends after two answers in a row: a backend whose answers take about as long as the timeout has one in time now and
// then, and what it grants with the others is lost.
const steadyTime = 2 * time.Second

// connection is what a member knows of whether the backend answers.
type connection struct {
	known     bool          // it has answered once
	out       bool          // it does not answer
	silent    bool          // nothing of that was logged, because the member was not running, or one was of late
	toldAt    clock.Instant // when an outage was logged last; 0 if none was
	untold    int           // outages since then
	since     clock.Instant // of out, or of its end
	err       error
	outages   int64
	heard     clock.Instant // when the last batch was sent that was answered
	suspect   clock.Instant // when the first batch was sent of those that have failed since; 0 if none
	suspected clock.Instant // when that was known
	probeAt   clock.Instant
	probeWait time.Duration
	timeout   time.Duration
	needed    int // how many answers in a row end the outage
	answers   int // how many there were

	mean, deviation time.Duration // of the time that answers take
}

// due is when the backend will have been silent for too long.
func (c *connection) due() clock.Instant {
	if c.out || c.suspect == 0 {
		return Never
	}
	return c.suspect.Add(c.timeout)
}

// measure counts how long an answer took.
func (x *Exchange) measure(took time.Duration) {
	c := &x.connection
	took = max(0, took)
	if !c.known {
		c.mean, c.deviation = took, took/2
	}
	c.deviation += ((took - c.mean).Abs() - c.deviation) / 16
	c.mean += (took - c.mean) / 8
}

// heard notes that a batch was answered that was sent at an instant.
func (x *Exchange) heard(now, sent clock.Instant) {
	c := &x.connection
	if !c.known {
		close(x.answered)
	}
	c.known, c.suspect = true, 0
	c.heard = max(c.heard, sent)
	if c.since == 0 {
		c.since = now
	}
	if !c.out {
		c.err = nil
		return
	}
	if c.answers++; c.answers < c.needed {
		c.probeAt = min(c.probeAt, now.Add(x.Jitter(minProbeWait)))
		return
	}
	if !c.silent {
		x.Log(slog.LevelInfo, "penstock: the backend of the fleet answers again",
			slog.Duration("after", now.Sub(c.since)))
	}
	c.out, c.silent, c.since, c.err = false, false, now, nil
	x.limits.BackIsUp(now)
}

// unheard notes that a batch has failed. One that was lost alone, while another one that was
// sent later was answered, tells nothing. One that failed before the timeout may have been
// lost with its connection, or the store refuses its limits: an announcement is sent to see; to a
// store with several servers, requests to each of them, of which one has to be answered within the
// timeout.
func (x *Exchange) unheard(now clock.Instant, batch *Batch, err error) {
	c := &x.connection
	switch {
	case c.out:
		c.err, c.answers = err, 0
		if c.untold > 0 && now.Sub(c.toldAt) >= tellInterval {
			x.tellOutage(now)
		}
		if batch.sent > c.since {
			x.limits.StayOut(now)
		}
	case c.heard >= batch.sent && c.known:
	case now >= batch.Deadline, c.suspect != 0 && batch.sent >= c.suspected && batch.Announce != nil && !x.isPartitioned():
		x.lose(now, err)
	case c.suspect == 0:
		c.suspect, c.suspected = batch.sent, now
		c.err = err
		x.announceAt = now
	}
}

// lose begins an outage.
func (x *Exchange) lose(now clock.Instant, err error) {
	c := &x.connection
	if c.needed = 1; c.outages > 0 && now.Sub(c.since) < steadyTime {
		c.needed = 2
	}
	c.out, c.suspect, c.since, c.err, c.answers = true, 0, now, err, 0
	c.outages++
	c.probeWait = minProbeWait
	c.probeAt = now.Add(x.Jitter(c.probeWait))
	if c.untold++; c.toldAt != 0 && now.Sub(c.toldAt) < tellInterval {
		c.silent = true
	} else {
		x.tellOutage(now)
	}
	x.limits.BeginOutages(now)
}

// tellOutage logs that the backend does not answer, and how often that was so since it was logged last.
func (x *Exchange) tellOutage(now clock.Instant) {
	c := &x.connection
	x.Log(slog.LevelError, "penstock: the backend of the fleet does not answer, limits go on as their onOutage says",
		slog.Any("error", c.err), slog.Int("outages", c.untold))
	c.silent, c.toldAt, c.untold = false, now, 0
}

// Log logs a line when the mutex is released: a handler may be slow, or look at the
// member.
func (x *Exchange) Log(level slog.Level, text string, about ...slog.Attr) {
	x.calls = append(x.calls, func() { x.log.LogAttrs(context.Background(), level, text, about...) })
}

// NoteRefusal notes that the store answers the requests of a limit with an error, and logs it
// if there is no other such limit.
func (x *Exchange) NoteRefusal(key string, err error) {
	if x.refusing++; x.refusing == 1 {
		x.Log(slog.LevelError, "penstock: the backend of the fleet does not count for limits, they go on as their onOutage says",
			slog.String("first", key), slog.Any("error", err))
	}
}

// NoteAccepted notes that the store counts for a limit again.
func (x *Exchange) NoteAccepted() {
	if x.refusing--; x.refusing == 0 {
		x.Log(slog.LevelInfo, "penstock: the backend of the fleet counts for all limits again")
	}
}

// RoundTrip is how long an answer takes.
func (x *Exchange) RoundTrip() time.Duration { return x.connection.mean }

// Lead is how long it takes from when tokens are missing until new ones are there.
func (x *Exchange) Lead() time.Duration {
	return Tick + min(x.connection.mean+2*x.connection.deviation, x.config.Timeout)
}
