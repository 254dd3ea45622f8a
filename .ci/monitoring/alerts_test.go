package monitoring_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// unitTests is alerts_test.yaml, as far as the tests use what promtool offers.
type unitTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		Alerts []alertTest `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

type alertTest struct {
	Alert    string         `yaml:"alertname"`
	At       model.Duration `yaml:"eval_time"`
	Expected []struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	} `yaml:"exp_alerts"`
}

func readUnitTests(t *testing.T) (u unitTests) {
	t.Helper()
	text, err := os.ReadFile(folder + "alerts_test.yaml")
	require.NoError(t, err)
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&u))
	return u
}

// readAlerts reads the alert rules, as promtool check rules does.
func readAlerts(t *testing.T) (alerts []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile(folder+"alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, group := range groups.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return alerts
}

func alertExpressions(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for _, a := range readAlerts(t) {
		all[a.Alert] = append(all[a.Alert], a.Expr)
	}
	return all
}

// The runbook of an alert is a section of docs/metrics.md.
func TestEveryAlertHasARunbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for _, a := range readAlerts(t) {
		assert.Contains(t, []string{"info", "warning", "critical"}, a.Labels["severity"], a.Alert)
		assert.Regexp(t, `\.$`, a.Annotations["summary"], a.Alert)
		assert.Equal(t, "https://github.com/penstock-go/penstock/blob/main/docs/metrics.md#"+strings.ToLower(a.Alert), a.Annotations["runbook_url"])
		_, section, found := strings.Cut(string(page), "\n### "+a.Alert+"\n\n")
		require.True(t, found, "docs/metrics.md has no section %s", a.Alert)
		section, _, _ = strings.Cut(section, "\n#")
		assert.Greater(t, len(section), 100, "%s: what is to be done?", a.Alert)
	}
}

func TestEveryAlertIsTestedToFireAndNotToFire(t *testing.T) {
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, group := range readUnitTests(t).Tests {
		for _, test := range group.Alerts {
			fires[test.Alert] = fires[test.Alert] || len(test.Expected) > 0
			quiet[test.Alert] = quiet[test.Alert] || len(test.Expected) == 0
		}
	}
	for _, a := range readAlerts(t) {
		assert.True(t, fires[a.Alert] && quiet[a.Alert], a.Alert)
	}
}

// What promtool test rules does with alerts_test.yaml: each group of tests has a TSDB, and
// the rules are evaluated as a Prometheus server does.
func TestAlertsFireWhenTheirTestsSay(t *testing.T) {
	tests := readUnitTests(t)
	for _, group := range tests.Tests {
		t.Run(group.Name, func(t *testing.T) {
			load := fmt.Sprintf("load %s\n", group.Interval)
			for _, s := range group.InputSeries {
				load += fmt.Sprintf("  %s %s\n", s.Series, s.Values)
			}
			loader, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
			require.NoError(t, err)
			defer func() { assert.NoError(t, loader.Close()) }()
			manager := rules.NewManager(&rules.ManagerOptions{
				QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(),
				Queryable: loader.Storage(), Context: t.Context(), Logger: slog.New(slog.DiscardHandler),
				NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Parser: parser.NewParser(parser.Options{}),
			})
			var files []string
			for _, name := range tests.RuleFiles {
				files = append(files, folder+name)
			}
			groups, errs := manager.LoadGroups(time.Duration(group.Interval), labels.EmptyLabels(), "", nil, false, files...)
			require.Empty(t, errs)
			evaluate(t, loader, groups, time.Duration(tests.EvaluationInterval), group.Alerts)
		})
	}
}

// evaluate evaluates the groups minute by minute and compares what fires with what should.
func evaluate(
	t *testing.T, loader *promqltest.LazyLoader, groups map[string]*rules.Group, every time.Duration, tests []alertTest,
) {
	t.Helper()
	last := slices.MaxFunc(tests, func(a, b alertTest) int { return int(a.At - b.At) }).At
	for at := time.Duration(0); at <= time.Duration(last); at += every {
		now := time.Unix(0, 0).UTC().Add(at)
		loader.WithSamplesTill(now, func(err error) { require.NoError(t, err) })
		firing := make(map[string][]*rules.Alert)
		for _, group := range groups {
			group.Eval(t.Context(), now)
			for _, r := range group.AlertingRules() {
				require.NoError(t, r.LastError())
				for _, alert := range r.ActiveAlerts() {
					if alert.State == rules.StateFiring {
						firing[r.Name()] = append(firing[r.Name()], alert)
					}
				}
			}
		}
		for _, test := range tests {
			if time.Duration(test.At) == at {
				compare(t, test, firing[test.Alert])
			}
		}
	}
}

// compare compares the alerts that fire with those of a test.
func compare(t *testing.T, test alertTest, firing []*rules.Alert) {
	t.Helper()
	type alert struct{ labels, annotations map[string]string }
	var want, got []alert
	for _, expected := range test.Expected {
		expected.Labels["alertname"] = test.Alert
		want = append(want, alert{expected.Labels, expected.Annotations})
	}
	for _, f := range firing {
		got = append(got, alert{f.Labels.Map(), f.Annotations.Map()})
	}
	assert.ElementsMatch(t, want, got, "%s at %s", test.Alert, test.At)
}
