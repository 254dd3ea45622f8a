// Package scenario reads what penstock simulates: load files, which say what
// calls come, and test files, which also say what shall become of them. It runs
// the cases of a test file and tells where they went another way.
//
// What is wrong with a file is told all at once, as [rules.Problems]: with line,
// column and what to do.
package scenario
