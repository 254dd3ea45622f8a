package rule

import (
	"errors"

	"github.com/penstock-go/penstock/fleet"
)

// MaxBalance is the most tokens that a balance can have, or owe.
const MaxBalance = fleet.MaxTokens

// ErrNoBalance says that a rule has nothing to recharge.
var ErrNoBalance = errors.New("it has no balance: only those with algorithm prepaid are recharged")
