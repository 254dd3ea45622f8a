package scenario

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// unit is what the numbers of a sequence are.
type unit struct {
	such  string                                        // an example
	parse func(text string) (v, slack float64, ok bool) // the slack is how far off still counts as equal
	show  func(float64) string
	none  bool // there may be none
}

// plainNumber is a number that cannot be taken for anything else: no sign, no
// exponent, and no second half of "1,000".
var plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// counts are calls, and tokens a second. They are compared as precisely as they
// are written.
func counts() unit {
	return unit{
		such: "100",
		parse: func(text string) (v, slack float64, ok bool) {
			_, decimals, _ := strings.Cut(text, ".")
			v, err := strconv.ParseFloat(text, 64)
			return v, 0.5 * math.Pow10(-len(decimals)), err == nil && plainNumber.MatchString(text)
		},
		show: func(v float64) string {
			if math.IsNaN(v) {
				return "none"
			}
			return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
		},
	}
}

// seconds are times, compared to the millisecond.
func seconds() unit {
	return unit{
		such: "200ms",
		parse: func(text string) (v, slack float64, ok bool) {
			d, ok := ParseDuration(text)
			return d.Seconds(), 0.0005, ok && d >= 0
		},
		show: func(v float64) string {
			if math.IsNaN(v) {
				return "none"
			}
			return time.Duration(math.Round(v*1e6) * float64(time.Microsecond)).String()
		},
	}
}

// sequence writes numbers in the notation of wants, so that they can be copied.
func (u unit) sequence(numbers []float64) string {
	const most = 100
	var words []string
	for i := 0; i < len(numbers); {
		if len(words) == most {
			return fmt.Sprintf("%s and %d more", strings.Join(words, " "), len(numbers)-i)
		}
		word := u.show(numbers[i])
		run := i + 1
		for run < len(numbers) && u.show(numbers[run]) == word {
			run++
		}
		if run-i > 1 {
			word += fmt.Sprintf("x%d", run-i)
		}
		words = append(words, word)
		i = run
	}
	return strings.Join(words, " ")
}
