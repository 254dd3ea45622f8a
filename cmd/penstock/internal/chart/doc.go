// Package chart draws the result of a simulation, second by second: for a terminal
// and as an SVG picture. Both show the same: bars of the calls that passed, on
// them those that were blocked, a mark at what was offered and a line at the
// ceiling; below them how many calls were under way, the limits that rules found
// themselves, what they shed, signals, and bands with the states of rules. Nothing is shown by colour alone.
package chart
