package rules

import "strings"

// nearest returns the known name that a misspelled one seems to mean, "" when
// none is near: one letter in three may differ.
func nearest(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many letters to insert, delete or replace to make one
// word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of the letters of a so far to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
