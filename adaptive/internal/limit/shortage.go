package limit

import "time"

// Shortage is what showed last that the service is short of something.
type Shortage struct {
	By Evidence

	Limit, Lower float64       // limits on calls under way: calls took longer at the first ([ByLimits])
	Slower       float64       // how many times as long calls took as at the lower limit, or as usual
	Calls, Of    float64       // calls that failed late, of so many ([ByFailures]); that came, of as many as usually come ([BySurge], [ByProcessor])
	Within       time.Duration // in which they came
	Delay        float64       // seconds that what can run waits for a processor ([ByProcessor])
}

// Evidence is a kind of evidence of a shortage.
type Evidence uint8

// The kinds of evidence.
const (
	ByNothing   Evidence = iota
	ByLimits             // more calls under way took longer, in proportion
	BySurge              // more calls came than usual, and took longer
	ByFailures           // calls failed late
	ByProcessor          // more calls came than usual, and what can run waits for a processor
	ByEarlier            // as much was done as in an earlier shortage, and calls took longer
)

// Shortage returns what showed last that the service is short of something.
func (c *Control) Shortage() Shortage { return c.shortage }
