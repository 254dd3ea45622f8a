package flow

import "github.com/penstock-go/penstock/rule"

// Fault is one mistake in a rule.
type Fault = rule.Fault
