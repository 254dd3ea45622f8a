// Package chart draws what became of a load, second by second: for a terminal
// and as an SVG picture. Both show the same: bars of the calls that passed, on
// them those that were blocked, a mark at what was offered and a line at the
// ceiling. Nothing is told by colour alone.
package chart
