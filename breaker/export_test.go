package breaker

// Bounds that tests look at from outside.
const (
	DefaultWindow   = defaultWindow
	MaxCalls        = maxCalls
	MaxDuration     = maxDuration
	MaxProbes       = maxProbes
	MinRatio        = minRatio
	MinOpenFor      = minOpenFor
	MinProbeTimeout = minProbeTimeout
	MinSlowAfter    = minSlowAfter
	MinWindow       = minWindow
)
