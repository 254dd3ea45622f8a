package rule

import (
	"errors"

	"github.com/penstock-go/penstock/fleet"
)

// MaxBalance is the most tokens that a balance can have, or owe.
const MaxBalance = fleet.MaxTokens

// ErrNoBalance says that a rule has nothing to recharge.
var ErrNoBalance = errors.New("it has no balance: only those with algorithm prepaid are recharged")

// Recharger is a limiter of balances that are only recharged: nothing flows back by itself.
type Recharger interface {
	Limiter

	// Recharge adds tokens to the balance that such a call is held against, or takes some off if the
	// number is below 0, however few are left; 0 changes nothing. done is called once, with what is left
	// then, below 0 if more was taken than there was, or with the reason why nothing was changed or that
	// is not known: by Recharge, or later by another goroutine, when the backend of a fleet has answered
	// or its timeout has passed. It must not block.
	Recharge(c Call, tokens int64, done func(left int64, err error))
}
