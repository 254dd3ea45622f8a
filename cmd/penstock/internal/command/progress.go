package command

import (
	"fmt"
	"io"
	"time"
)

// progress tells somebody at a terminal how far a long run is.
type progress struct {
	out      io.Writer
	patience time.Duration // nothing is told of runs that are shorter
	silent   bool

	begun, told time.Time
}

// show tells how much of a simulation is done.
func (p *progress) show(done, of time.Duration) {
	p.tell(fmt.Sprintf("simulating: %.0f of %.0f s", done.Seconds(), of.Seconds()))
}

// tell tells what is being done and how far it is, ten times a second at most.
func (p *progress) tell(text string) {
	now := time.Now()
	if p.begun.IsZero() {
		p.begun = now
	}
	if p.silent || now.Sub(p.begun) < p.patience || now.Sub(p.told) < 100*time.Millisecond {
		return
	}
	p.told = now
	fmt.Fprintf(p.out, "\r%s", text)
}

// end wipes out what was told.
func (p *progress) end() {
	if !p.told.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
