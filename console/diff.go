package console

import (
	"bytes"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/datasource/etcd/store"
)

const (
	// maxCompared is how many pairs of lines a comparison looks at. Documents that differ in more are
	// shown as one that was replaced.
	maxCompared = 4 << 20

	diffContext = 3    // lines that are shown around those that differ
	maxDiff     = 2000 // lines of a document that are shown
)

// documentDiff is how the lines of a document differ.
type documentDiff struct {
	Name  string     `json:"name"`
	Lines []diffLine `json:"lines"`
	More  int        `json:"more,omitempty"` // lines that are left out at the end
}

// diffLine is a line that both versions have, or one of them.
type diffLine struct {
	Op   string `json:"op"` // "+" for the new one only, "-" for the old one only, "…" for lines that are left out
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// diffDocuments returns the documents that differ, by name.
func diffDocuments(from, to []store.Document) []documentDiff {
	texts := make(map[string][2][]byte)
	for side, documents := range [][]store.Document{from, to} {
		for _, d := range documents {
			both := texts[d.Name]
			both[side] = d.Data
			texts[d.Name] = both
		}
	}
	all := []documentDiff{}
	for name, both := range texts {
		if !bytes.Equal(both[0], both[1]) {
			lines := shorten(diffLines(linesOf(both[0]), linesOf(both[1])))
			shown := min(len(lines), maxDiff)
			all = append(all, documentDiff{name, lines[:shown], len(lines) - shown})
		}
	}
	slices.SortFunc(all, func(a, b documentDiff) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func linesOf(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// diffLines returns the lines of both versions, with as few differences as there can be. Lines have the
// numbers of the new version.
func diffLines(a, b []string) []diffLine {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var lines []diffLine
	for i := range start {
		lines = append(lines, diffLine{" ", i + 1, a[i]})
	}
	lines = appendMiddle(lines, a[start:len(a)-end], b[start:len(b)-end], start)
	for i := len(b) - end; i < len(b); i++ {
		lines = append(lines, diffLine{" ", i + 1, b[i]})
	}
	return lines
}

// appendMiddle appends the lines between those that both versions begin and end with.
func appendMiddle(lines []diffLine, a, b []string, start int) []diffLine {
	common := longest(a, b)
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case common != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, diffLine{" ", start + j + 1, b[j]})
			i++
			j++
		case i < len(a) && (j == len(b) || common == nil || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, diffLine{"-", 0, a[i]})
			i++
		default:
			lines = append(lines, diffLine{"+", start + j + 1, b[j]})
			j++
		}
	}
	return lines
}

// longest returns the length of the longest common subsequence of a[i:] and b[j:]; nil if there are too
// many lines.
func longest(a, b []string) [][]int32 {
	if (len(a)+1)*(len(b)+1) > maxCompared {
		return nil
	}
	lengths := make([][]int32, len(a)+1)
	for i := range lengths {
		lengths[i] = make([]int32, len(b)+1)
	}
	for i, line := range slices.Backward(a) {
		for j, other := range slices.Backward(b) {
			if line == other {
				lengths[i][j] = lengths[i+1][j+1] + 1
			} else {
				lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1])
			}
		}
	}
	return lengths
}

// shorten leaves out lines that are far from those that differ.
func shorten(lines []diffLine) []diffLine {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.Op != " " {
			for j := max(0, i-diffContext); j <= min(len(lines)-1, i+diffContext); j++ {
				near[j] = true
			}
		}
	}
	shown := []diffLine{}
	for i, l := range lines {
		switch {
		case near[i]:
			shown = append(shown, l)
		case i == 0 || near[i-1]:
			shown = append(shown, diffLine{Op: "…"})
		}
	}
	return shown
}
