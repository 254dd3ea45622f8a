package monitoring_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder has what is tested.
const folder = "../../metrics/prometheus/monitoring/"

// dashboard is what the tests need of dashboard.json.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []target
	FieldConfig              struct {
		Defaults struct {
			Unit     string
			Mappings []struct {
				Options map[string]struct{ Text, Color string }
			}
			Custom struct {
				Stacking struct{ Mode string }
			}
		}
		Overrides []struct {
			Matcher struct{ ID, Options string }
		}
	}
}

type target struct{ Expr, LegendFormat string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(folder + "dashboard.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// expand replaces the variables of the dashboard, as Grafana does for "All".
func expand(expr string) string {
	return strings.NewReplacer(
		"$job", ".*", "$instance", ".*", "$engine", ".*", "$resource", ".*", "$__rate_interval", "1m",
	).Replace(expr)
}

// expressions returns the expressions of the dashboard by the title of the panel.
func (d dashboard) expressions() map[string][]string {
	all := make(map[string][]string)
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all[p.Title] = append(all[p.Title], expand(t.Expr))
		}
	}
	for _, a := range d.Annotations.List {
		all[a.Name] = append(all[a.Name], expand(a.Expr))
	}
	return all
}

func TestPanelsHaveTitlesDescriptionsAndPlacesOfTheirOwn(t *testing.T) {
	const columns = 24
	ids, titles, taken := make(map[int]bool), make(map[string]bool), make(map[[2]int]string)
	for _, p := range readDashboard(t).Panels {
		assert.False(t, ids[p.ID], "%s has the id of another panel", p.Title)
		assert.False(t, titles[p.Title], "%s is there twice", p.Title)
		ids[p.ID], titles[p.Title] = true, true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, columns, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s is where another panel is", p.Title)
				taken[at] = p.Title
			}
		}
		if p.Type != "row" {
			assert.NotEmpty(t, p.Description, p.Title)
			assert.NotEmpty(t, p.Targets, p.Title)
		}
	}
}

func TestExpressionsUseEveryVariableOfTheDashboard(t *testing.T) {
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, variable := range []string{"$job", "$instance", "$engine"} {
				assert.Equal(t, strings.Count(target.Expr, "penstock_"), strings.Count(target.Expr, variable), "%s: %s", p.Title, target.Expr)
			}
		}
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	assert.Equal(t, []string{"datasource", "job", "instance", "engine", "resource"}, names)
}

// What two instances show under load, with things going wrong, is asked by the expressions of
// dashboard and alerts. With -draw the dashboard is drawn as well.
func TestDashboardOfARealLoad(t *testing.T) {
	db := store(t, run(t))
	t.Run("names metrics and labels that exist", func(t *testing.T) { assertNames(t, db.labelsByMetric(t)) })
	shown := make(map[int][]line)
	t.Run("every panel shows something", func(t *testing.T) {
		for _, p := range readDashboard(t).Panels {
			for _, target := range p.Targets {
				result, err := db.ask(t.Context(), expand(target.Expr))
				require.NoError(t, err, "%s: %s", p.Title, target.Expr)
				assert.NotEmpty(t, result, "%s: %s", p.Title, target.Expr)
				shown[p.ID] = append(shown[p.ID], linesOf(result, target.LegendFormat)...)
			}
			assert.True(t, p.Type == "row" || slices.ContainsFunc(shown[p.ID], line.isMore), "%s shows nothing", p.Title)
		}
	})
	if *draw != "" && !t.Failed() {
		require.NoError(t, os.WriteFile(*draw, picture(t, readDashboard(t).Panels, shown, db), 0o644))
	}
}

// assertNames asserts that dashboard and alerts ask for no metric or label that a real engine
// does not have.
func assertNames(t *testing.T, exposed map[string]map[string]bool) {
	t.Helper()
	all := readDashboard(t).expressions()
	maps.Copy(all, alertExpressions(t))
	checked := 0
	for _, title := range slices.Sorted(maps.Keys(all)) {
		for _, text := range all[title] {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
			require.NoError(t, err, "%s: %s", title, text)
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok {
					return nil
				}
				checked++
				labels, ok := exposed[selector.Name]
				assert.True(t, ok, "%s: no engine exposes %s", title, selector.Name)
				for _, m := range selector.LabelMatchers {
					if m.Name != "engine" { // a constant label, if there is one
						assert.True(t, labels[m.Name], "%s: %s has no label %s", title, selector.Name, m.Name)
					}
				}
				return nil
			})
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if sum, ok := node.(*parser.AggregateExpr); ok {
					assertGrouping(t, title, sum, exposed)
				}
				return nil
			})
		}
	}
	assert.Greater(t, checked, 75)
}

// assertGrouping asserts that what is summed up by labels has these labels.
func assertGrouping(t *testing.T, title string, sum *parser.AggregateExpr, exposed map[string]map[string]bool) {
	t.Helper()
	parser.Inspect(sum.Expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			for _, label := range sum.Grouping {
				assert.True(t, exposed[selector.Name][label] || label == "engine", "%s: %s has no label %s", title, selector.Name, label)
			}
		}
		return nil
	})
}
