package recorder

import "github.com/penstock-go/penstock/recording"

// Flags say what is true of a call.
type Flags uint8

// The flags, in the order of the fields of a [recording.Call].
const (
	Inbound Flags = 1 << iota
	NoWait
	LongLived
	Failed
	Ignored
	Cancelled
)

// addTo says in a call what flags say of it.
func (f Flags) addTo(c *recording.Call) {
	c.Inbound = c.Inbound || f&Inbound != 0
	c.NoWait = c.NoWait || f&NoWait != 0
	c.LongLived = c.LongLived || f&LongLived != 0
	c.Failed = c.Failed || f&Failed != 0
	c.Ignored = c.Ignored || f&Ignored != 0
	c.Cancelled = c.Cancelled || f&Cancelled != 0
}
