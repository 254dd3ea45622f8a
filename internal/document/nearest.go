package document

import "strings"

// Nearest returns the known name that a misspelled one seems to mean, "" when
// none is near: one letter in three may differ, or the end be left off.
func Nearest(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		name, lower := strings.ToLower(name), strings.ToLower(k)
		if len(name)-len(k) >= least {
			continue // nor is the distance less
		}
		d := distance(name, lower)
		if len(name) >= 3 && strings.HasPrefix(lower, name) {
			d = 0 // rather than another word that is misspelled
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many letters to insert, delete, replace or swap with the
// next to make one word of the other.
func distance(a, b string) int {
	// Distances of the letters of a so far to each prefix of b, and those of one
	// and of two letters before.
	row, above, twoAbove := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		row, above, twoAbove = twoAbove, row, above
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], twoAbove[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
