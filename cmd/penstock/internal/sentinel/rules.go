package sentinel

import (
	"errors"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// Rules are the rules of a conversion, by kind.
type Rules struct {
	Flow      []flow.Rule
	Isolation []isolation.Rule
	Breaker   []breaker.Rule
}

// errNotInDocuments is the error for rules that documents have no list for.
var errNotInDocuments = errors.New("documents of this version have no isolation rules and no circuit breakers: convert flow rules alone")

// Set returns the rules as those of a document.
func (r Rules) Set() (rules.Set, error) {
	if len(r.Isolation)+len(r.Breaker) > 0 {
		return rules.Set{}, errNotInDocuments
	}
	return rules.Set{Flow: r.Flow}, nil
}
