package simulate

// FleetSecond is what all instances together let through under a limit that they share, in
// one second. It counts tokens.
type FleetSecond struct {
	T        float64 `json:"t"` // seconds: when the second began
	Rule     string  `json:"rule"`
	Kind     string  `json:"kind"`
	Resource string  `json:"resource"` // or the pattern of a rule that several resources share

	// Limit is that of the rule in tokens a second; nil for a kind of rule that has a limit
	// for each of many values.
	Limit *float64 `json:"limit"`

	Passed  int `json:"passed"`  // of calls that the rule is about and that were let through in this second
	Refused int `json:"refused"` // of calls that arrived in it and that the rule refused

	// Least and Most are what passed on the instances on which the least and the most did,
	// and Instances what passed on each of them, if there are no more than 100.
	Least     int   `json:"least"`
	Most      int   `json:"most"`
	Instances []int `json:"instances,omitempty"`

	Connected int `json:"connected"` // instances that the backend answered when the second ended
}

// maxParts is how many instances have a number of their own in [FleetSecond.Instances].
const maxParts = 100

// BackendSecond is what the instances asked of the backend in one second.
type BackendSecond struct {
	T          float64 `json:"t"`          // seconds: when the second began
	Requests   int     `json:"requests"`   // for tokens of a limit, also those that were not answered
	RoundTrips int     `json:"roundTrips"` // in which they were sent, announcements of instances included
	Unanswered int     `json:"unanswered"` // of the round trips
}

// OutageSpan is an [Outage] in seconds.
type OutageSpan struct {
	From  float64 `json:"from"`
	Until float64 `json:"until"`
	Empty bool    `json:"empty"`
}
