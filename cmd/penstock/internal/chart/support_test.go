package chart_test

import (
	"math"

	"github.com/penstock-go/penstock/simulate"
)

// rows makes the seconds of resources, of what a function says of each.
func rows(seconds int, resources []string, of func(second, resource int) simulate.Second) []simulate.Second {
	var all []simulate.Second
	for second := range seconds {
		for i, name := range resources {
			s := of(second, i)
			s.Second, s.Resource = second, name
			all = append(all, s)
		}
	}
	return all
}

// one is a second with what was offered and passed; the rest was blocked. The
// ceiling NaN is none.
func one(offered, passed int, ceiling float64) simulate.Second {
	s := simulate.Second{Offered: offered, Passed: passed, Blocked: offered - passed}
	if !math.IsNaN(ceiling) {
		s.Ceiling = &ceiling
	}
	return s
}

// scenes are what charts have to show, whatever it looks like.
func scenes() map[string][]simulate.Second {
	none := math.NaN()
	warm := []int{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}
	long := "a name that is longer than any chart is wide: " + "GET /orders/{id}/lines/{line}/parcels/{parcel}/track"
	return map[string][]simulate.Second{
		"warmup": rows(20, []string{"orders:create"}, func(second, _ int) simulate.Second {
			return one(2000, warm[second], float64(warm[second])+0.4)
		}),
		"resources": rows(60, []string{"carts", "free", `<GET> "/a" & b` + "\x1b[31m", long, "stock"}, func(second, resource int) simulate.Second {
			offered := 40 + second*(resource+1)%60
			if resource == 1 {
				return one(offered, offered, none)
			}
			return one(offered, min(offered, 50+10*resource), float64(50+10*resource))
		}),
		"short":    rows(3, []string{"r"}, func(second, _ int) simulate.Second { return one(5-second, 2, 2.5) }),
		"zero":     rows(5, []string{"r"}, func(int, int) simulate.Second { return one(0, 0, none) }),
		"blocked":  rows(5, []string{"r"}, func(int, int) simulate.Second { return one(4, 0, 0) }),
		"million":  rows(30, []string{"r"}, func(second, _ int) simulate.Second { return one(1_000_000, 900_000-second*9000, 900_000) }),
		"fraction": rows(12, []string{"r"}, func(second, _ int) simulate.Second { return one(1, 1-second%2, 0.5) }),
		"aloft":    rows(12, []string{"r"}, func(int, int) simulate.Second { return one(10, 10, 5000) }),
		"waits": rows(9, []string{"r"}, func(second, _ int) simulate.Second {
			s := one(0, 0, 10)
			s.Passed, s.Waited = 10, 10
			if second%4 == 0 {
				s.Offered, s.Waited = 40, 9
			}
			return s
		}),
		"long": rows(900, []string{"r"}, func(second, _ int) simulate.Second {
			offered := 500 + int(400*math.Sin(float64(second)/60))
			return one(offered, min(offered, 600), 600)
		}),
		"nothing": nil,
	}
}
