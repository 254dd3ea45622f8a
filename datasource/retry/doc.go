// Package retry is what sources of rules and of lists have in common about failures: how long
// they pause before another attempt, and which errors are the same as the one before.
//
// It is for those who write a source of their own, too.
package retry
