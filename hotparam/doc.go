// Package hotparam limits the calls of each value of an attribute: of each user, each
// tenant, each client address. It is one of the kinds of rules: see the package rule.
//
// Every value has a limit of its own. The state of the values stands in a table of fixed
// size, [Rule.MaxValues], which is made for values that strangers choose: the state of a
// value is forgotten only when it is as that of a new one, so nobody gains anything by
// calling with many values. Values that find no place are judged by counters that they
// share. Those count too much rather than too little.
package hotparam
