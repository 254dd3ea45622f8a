// Package call is one call on its way through the rules: what is asked (Request), of which rules (Chain, made of
// a Step for each), what each said (Answer) and gave (HeldTickets while the call waits, PassedRules and Record once
// it has passed), and the errors of the rules that refuse (Refusals). It has no resources, no plans, no clock and no
// waiting: package core asks it, and waits.
package call
