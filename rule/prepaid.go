package rule

import "github.com/penstock-go/penstock/fleet"

// MaxBalance is the most tokens that a balance can have, or owe.
const MaxBalance = fleet.MaxTokens
