package inspect

import (
	"encoding/json"
	"math"
)

// Ceiling is how many tokens may pass in a time. It is infinite, null in JSON, if all calls
// pass, as those of a fleet rule do in an outage with onOutage open.
type Ceiling float64

// MarshalJSON implements [json.Marshaler].
func (c Ceiling) MarshalJSON() ([]byte, error) {
	if c.IsInfinite() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(c))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Ceiling) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*c = Ceiling(math.Inf(1))
		return nil
	}
	return json.Unmarshal(text, (*float64)(c))
}

// IsInfinite says whether all calls pass.
func (c Ceiling) IsInfinite() bool { return math.IsInf(float64(c), 1) }
