package scenario

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// parsed returns what a document "x: …" expects, and the mistakes in it.
func parsed(t require.TestingT, text string, u unit) (wants, string) {
	r, root := open("d", []byte("x: "+text))
	if root == nil {
		return wants{}, r.problems.Err().Error()
	}
	require.Len(t, root.Content, 2)
	w := r.wants(root.Content[1], "x", u)
	var lines []string
	for _, p := range r.problems {
		lines = append(lines, p.Error())
	}
	return w, strings.Join(lines, "\n")
}

// ceilings are numbers that may be missing.
func ceilings() unit {
	u := counts()
	u.none = true
	return u
}

func TestWantsHoldForTheNumbersTheyName(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	for _, test := range []struct {
		text string
		unit unit
		yes  []float64 // number by number
		no   []float64
	}{
		{"5", counts(), []float64{5}, []float64{6}},
		{"0", counts(), []float64{0}, []float64{1}},
		{"333.3", counts(), []float64{333.3333}, []float64{333.36}},
		{"333.30", counts(), []float64{333.304}, []float64{333.31}},
		{"5±2", counts(), []float64{3}, []float64{2}},
		{"5+-2", counts(), []float64{7}, []float64{8}},
		{"200±5%", counts(), []float64{210}, []float64{211}},
		{"3..5", counts(), []float64{3}, []float64{2}},
		{"3..5", counts(), []float64{5}, []float64{6}},
		{"3..", counts(), []float64{1e9}, []float64{2}},
		{"..3", counts(), []float64{0}, []float64{4}},
		{"_ 5", counts(), []float64{77, 5}, []float64{77, 6}},
		{"1 2 3", counts(), []float64{1, 2, 3}, []float64{1, 2, 4}},
		{"1, 2, 3", counts(), []float64{1, 2, 3}, []float64{1, 3, 3}},
		{"[1, 2, 3]", counts(), []float64{1, 2, 3}, []float64{2, 2, 3}},
		{"[1, 2 3, ±1]", counts(), []float64{0, 3, 2}, []float64{3, 2, 3}},
		{"10 20±5 1..2 ±1", counts(), []float64{11, 25, 2}, []float64{12, 25, 2}},
		{"10 20±5 1..2 ±1", counts(), []float64{9, 15, 1}, []float64{9, 15, 0}},
		{"1 2x3 4", counts(), []float64{1, 2, 2, 2, 4}, []float64{1, 2, 2, 4, 4}},
		{"1 2 x3 4", counts(), []float64{1, 2, 2, 2, 4}, []float64{1, 2, 2, 2, 2}},
		{"1 2…", counts(), []float64{1, 2, 2, 2}, []float64{1, 2, 2, 3}},
		{"1 2... ±1", counts(), []float64{0, 3, 1}, []float64{1, 2, 4}},
		{"1 _ …", counts(), []float64{1, 9, 99}, []float64{2, 9, 99}},
		{"3..5...", counts(), []float64{3, 4, 5}, []float64{3, 4, 6}},
		{"3.....", counts(), []float64{3, 4, 5}, []float64{3, 4, 2}},
		{"none 5", ceilings(), []float64{none, 5}, []float64{5, 5}},
		{"5", ceilings(), []float64{5}, []float64{none}},
		{"200ms", seconds(), []float64{0.2004}, []float64{0.2006}},
		{"0", seconds(), []float64{0}, []float64{0.001}},
		{"0.547 ±2ms", seconds(), []float64{0.549}, []float64{0.5491}},
		{"8.3±0.1", seconds(), []float64{8.2}, []float64{8.199}},
		{"..1.5s", seconds(), []float64{1.5}, []float64{1.51}},
	} {
		w, mistakes := parsed(t, test.text, test.unit)
		require.Empty(t, mistakes, test.text)
		assert.Nil(t, compare("second", w, test.yes, test.unit), "%s: %v", test.text, test.yes)
		assert.NotNil(t, compare("second", w, test.no, test.unit), "%s: %v", test.text, test.no)
	}
}

func TestMistakesInWantsAreReportedWithTheirPlaces(t *testing.T) {
	t.Parallel()
	const such = ": must be a number, such as 100, with a tolerance, as 100±5%, a range, as 100.., or _ for any"
	for text, want := range map[string]string{
		"1,000":       `d:1:4: x has "1,000"` + such,
		"5 1e3 -2":    `d:1:6: x has "1e3"` + such + "\n" + `d:1:10: x has "-2"` + such,
		"'5 007'":     `d:1:7: x has "007"` + such,
		"1 5..3":      `d:1:6: x has "5..3"` + such,
		"..":          `d:1:4: x has ".."` + such,
		"3..5±1":      `d:1:4: x has "3..5±1"` + such,
		"1 5±x":       `d:1:6: x has "5±x"` + such,
		"none":        `d:1:4: x has "none"` + such,
		"1 ±many":     `d:1:6: x has "±many": must be a tolerance, such as ±100 or ±5%`,
		"1 ±1 ±2":     `d:1:9: x has a second tolerance: remove one`,
		"x3":          `d:1:4: x has "x3": write x and how many times behind a number; at most 100000 numbers in all`,
		"0x0":         `d:1:4: x has "0x0": write x and how many times behind a number; at most 100000 numbers in all`,
		"1x999999":    `d:1:4: x has "1x999999": write x and how many times behind a number; at most 100000 numbers in all`,
		"…":           `d:1:4: x has nothing before the …: write the number that it holds to the end`,
		"1… 2":        `d:1:7: x has "2" behind the …, which holds to the end: remove one of them`,
		"[1, {a: b}]": `d:1:8: x is a mapping: must be numbers, such as 100`,
		"":            `d:1:3: x is left empty: must be numbers, such as 100`,
		"[]":          `d:1:4: x is empty: must be numbers, such as 100, or a range, such as 100.. for 100 and more`,
		">5":          `d:1:4: x is empty: must be numbers, such as 100, or a range, such as 100.. for 100 and more`,
		`"a\tb"`:      `d:1:4: x has "a"` + such + "\n" + `d:1:4: x has "b"` + such,
	} {
		_, mistakes := parsed(t, text, counts())
		assert.Equal(t, want, mistakes, text)
	}
}

func TestASequenceIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, 3).Draw(t, "number")) / 4
		}), 1, 90).Draw(t, "numbers")
		for _, u := range []unit{counts(), seconds()} {
			w, mistakes := parsed(t, u.sequence(numbers), u)
			require.Empty(t, mistakes)
			assert.Nil(t, compare("second", w, numbers, u))
		}
	})
}

func TestALongSequenceIsCut(t *testing.T) {
	t.Parallel()
	numbers := make([]float64, 250)
	for i := range numbers {
		numbers[i] = float64(i)
	}
	text := counts().sequence(numbers)
	assert.True(t, strings.HasSuffix(text, " 98 99 and 150 more"), text)
	assert.Equal(t, "0 nonex2", counts().sequence([]float64{0, math.NaN(), math.NaN()}))
}
