package limit

// Processor is how the process stands with its processors, as far as is known.
type Processor uint8

// How it stands.
const (
	ProcessorUnknown Processor = iota
	ProcessorIdle              // what can run soon does
	ProcessorBusy              // what can run waits for a while
	ProcessorShort             // it waits as long as calls may wait
)

// SetProcessor says how the process stands with its processors, and how many seconds what can run waits.
func (c *Control) SetProcessor(p Processor, delay float64) { c.processor, c.delay = p, delay }

// ShortOfProcessors says whether what can run waits as long for a processor as calls may wait.
func (c *Control) ShortOfProcessors() bool { return c.processor == ProcessorShort }

// mayDoMore says that calls that were limited while the process was short of processors leave some idle now.
func (c *Control) mayDoMore() bool { return c.computes && c.processor == ProcessorIdle }
