// Package scenario reads what penstock simulates: load files, which say what
// calls come, and test files, which also say what to expect of them. It runs the
// cases of a test file and reports the expectations that do not hold.
//
// All mistakes in a file are reported at once, as [rules.Problems]: with line,
// column and what to do.
package scenario
