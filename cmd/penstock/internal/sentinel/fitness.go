package sentinel

import (
	"errors"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// judgeRules returns the rules that are fit for a document, and what is wrong
// with the others. It looks for those among many: to judge each by itself takes
// far longer than to judge a list in which nothing is wrong.
func judgeRules(converted []carried) (fit []carried, unfit []Finding) {
	return judgePart(converted, rulesOf(converted))
}

// judgePart is judgeRules for a part of the list, with the rules in it.
func judgePart(converted []carried, part []flow.Rule) (fit []carried, unfit []Finding) {
	set := rules.Set{Flow: part}
	if set.Sound() {
		return converted, nil
	}
	if len(part) > 1 {
		middle := len(part) / 2
		before, faults := judgePart(converted[:middle:middle], part[:middle])
		after, more := judgePart(converted[middle:], part[middle:])
		return append(before, after...), append(faults, more...)
	}
	var problems rules.Problems
	errors.As(set.Validate(), &problems)
	for _, p := range problems {
		unfit = append(unfit, Finding{
			Kind: LeftOut, offset: converted[0].offset, Resource: converted[0].resource,
			Message: "as a rule here, " + p.Field + " " + p.Message,
		})
	}
	return nil, unfit
}
