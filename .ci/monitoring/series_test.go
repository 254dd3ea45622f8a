package monitoring_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// database is a TSDB with what was scraped, and an engine that asks it.
type database struct {
	*teststorage.TestStorage
	engine     *promql.Engine
	begin, end time.Time
}

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{}),
	})
}

func store(t *testing.T, scrapes []scrape) *database {
	t.Helper()
	db := &database{TestStorage: teststorage.New(t), engine: newEngine()}
	for _, s := range scrapes {
		app := db.Appender(t.Context())
		require.NoError(t, s.appendTo(app))
		require.NoError(t, app.Commit())
		if db.begin.IsZero() {
			db.begin = s.at
		}
		db.end = s.at
	}
	return db
}

// appendTo adds the samples of a scrape, with the labels that Prometheus adds.
func (s scrape) appendTo(app storage.Appender) error {
	p, err := textparse.New(s.body, s.contentType, nil, textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entry != textparse.EntrySeries && entry != textparse.EntryHistogram:
			continue
		}
		var series labels.Labels
		p.Labels(&series)
		series = labels.NewBuilder(series).Set("job", "shop").Set("instance", s.instance).Labels()
		at := s.at.UnixMilli()
		if entry == textparse.EntrySeries {
			_, _, value := p.Series()
			_, err = app.Append(0, series, at, value)
		} else {
			var whole *histogram.Histogram
			_, _, whole, _ = p.Histogram()
			_, err = app.AppendHistogram(0, series, at, whole, nil)
		}
		if err != nil {
			return err
		}
	}
}

// ask evaluates an expression over all the time.
func (db *database) ask(ctx context.Context, expr string) (promql.Matrix, error) {
	query, err := db.engine.NewRangeQuery(ctx, db, nil, expr, db.begin.Add(time.Minute), db.end, interval)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	matrix, err := result.Matrix()
	series := make(promql.Matrix, len(matrix))
	for i, s := range matrix { // the query uses its memory again
		series[i] = promql.Series{Metric: s.Metric.Copy(), Floats: append([]promql.FPoint(nil), s.Floats...)}
	}
	return series, err
}

// labelsByMetric returns the labels that the series of each metric have.
func (db *database) labelsByMetric(t *testing.T) map[string]map[string]bool {
	t.Helper()
	querier, err := db.Querier(db.begin.UnixMilli(), db.end.UnixMilli())
	require.NoError(t, err)
	defer func() { assert.NoError(t, querier.Close()) }()
	all := make(map[string]map[string]bool)
	set := querier.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, "penstock_.*"))
	for set.Next() {
		series := set.At().Labels()
		name := series.Get(model.MetricNameLabel)
		if all[name] == nil {
			all[name] = make(map[string]bool)
		}
		series.Range(func(l labels.Label) { all[name][l.Name] = true })
	}
	require.NoError(t, set.Err())
	return all
}
