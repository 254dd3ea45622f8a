package calendar_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/calendar"
)

// The file has when windows begin, as Python's zoneinfo tells it: for each change of the clocks of
// twelve years some, others at random, and some of windows that start at odd times: on a day or at a time of the
// day that not all months and days have, or that clocks show twice.
func TestWindowsBeginAsPythonSays(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/starts.txt")
	require.NoError(t, err)
	defer file.Close()
	rows, lines := 0, bufio.NewScanner(file)
	for lines.Scan() {
		var zone, period, start string
		var seconds int64
		_, err := fmt.Sscan(lines.Text(), &zone, &period, &start, &seconds)
		require.NoError(t, err, lines.Text())
		c := calendarOf(t, period, zone, strings.TrimPrefix(start, "-"))
		number := c.Number(time.Unix(seconds, 0))
		assert.Equal(t, seconds, c.Start(number).Unix(), lines.Text())
		assert.Equal(t, number-1, c.Number(time.Unix(seconds-1, 0)), lines.Text())
		rows++
	}
	require.NoError(t, lines.Err())
	require.Greater(t, rows, 500)
}

func calendarOf(t require.TestingT, period, zone, start string) *calendar.Calendar {
	p, ok := calendar.ParsePeriod(period)
	require.True(t, ok, period)
	c, err := calendar.New(p, zone, start)
	require.NoError(t, err)
	return c
}

func TestWindowsOfOneLength(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{time.Hour, 90 * time.Minute, 24 * time.Hour, 7*time.Hour + 1} {
		c := calendar.Every(length)
		assert.Equal(t, length, c.Length())
		for _, number := range []int64{-2, -1, 0, 1, 100_000} {
			assert.Equal(t, number*int64(length), c.Start(number).UnixNano())
			assert.Equal(t, number, c.Number(c.Start(number)))
			assert.Equal(t, number, c.Number(c.Start(number+1).Add(-1)))
		}
		assert.True(t, c.Equal(calendar.Every(length)))
		assert.False(t, c.Equal(calendar.Every(2*length)))
		assert.False(t, c.Equal(calendarOf(t, "1d", "", "")))
	}
}

// Whatever the calendar, its windows follow each other, and each instant is in one of them.
func TestWindowsPartTime(t *testing.T) {
	t.Parallel()
	zones := []string{"", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo", "Asia/Beirut"}
	rapid.Check(t, func(t *rapid.T) {
		p := calendar.Period{
			Count: rapid.IntRange(1, 40).Draw(t, "count"),
			Unit:  rapid.SampledFrom([]calendar.Unit{calendar.Day, calendar.Week, calendar.Month}).Draw(t, "unit"),
		}
		start := ""
		if rapid.Bool().Draw(t, "starts") {
			start = time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "start"), 0).UTC().Format("2006-01-02T15:04:05")
		}
		c, err := calendar.New(p, rapid.SampledFrom(zones).Draw(t, "zone"), start)
		require.NoError(t, err)
		at := time.Unix(rapid.Int64Range(0, 6e9).Draw(t, "at"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns"))
		n := c.Number(at)
		assert.False(t, c.Start(n).After(at))
		assert.True(t, c.Start(n+1).After(at))
		assert.Equal(t, n, c.Number(c.Start(n+1).Add(-1)), "until its end")
		length := c.Start(n + 1).Sub(c.Start(n))
		assert.InDelta(t, p.Length().Hours(), length.Hours(), 3*24+1)
		assert.LessOrEqual(t, length, p.Longest())
		assert.GreaterOrEqual(t, n, int64(0))
	})
}

func TestDaysOfChangedClocks(t *testing.T) {
	t.Parallel()
	c := calendarOf(t, "1d", "Europe/Berlin", "")
	for date, hours := range map[string]float64{"2026-03-29": 23, "2026-10-25": 25, "2026-10-26": 24} {
		noon, err := time.Parse("2006-01-02T15:04Z07:00", date+"T12:00+01:00")
		require.NoError(t, err)
		n := c.Number(noon)
		assert.InDelta(t, hours, c.Start(n+1).Sub(c.Start(n)).Hours(), 0, date)
	}
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1d", "7d", "1w", "2w", "1mo", "3mo", "120mo", "3660d"} {
		p, ok := calendar.ParsePeriod(text)
		assert.True(t, ok, text)
		assert.Equal(t, text, p.String())
		assert.Empty(t, p.Fault(), text)
	}
	for _, text := range []string{"", "d", "mo", "1m", "1h", "1.5d", "-1d", "+1d", "01d", "1d2", "1dw", "1 d", "1o", "99999999999999999999d", "1y"} {
		_, ok := calendar.ParsePeriod(text)
		assert.False(t, ok, text)
	}
	for _, text := range []string{"0d", "0mo", "3661d", "523w", "121mo"} {
		p, ok := calendar.ParsePeriod(text)
		assert.True(t, ok, text)
		assert.Contains(t, p.Fault(), "must be from 1", text)
	}
	assert.Empty(t, calendar.Period{}.String())
	assert.NotEmpty(t, calendar.Period{Count: 1, Unit: "y"}.Fault())
}

func TestWhatIsNoCalendar(t *testing.T) {
	t.Parallel()
	month := calendar.Period{Count: 1, Unit: calendar.Month}
	for _, test := range []struct {
		period      calendar.Period
		zone, start string
		says        string
	}{
		{calendar.Period{}, "", "", "the period has the unit"},
		{month, "Europe/Berlino", "", "IANA"},
		{month, "Local", "", "it differs between machines"},
		{month, "../etc", "", "IANA"},
		{month, "", "17", "2026-01-17"},
		{month, "", "2026-02-30", "2026-01-17"},
		{month, "", "1969-12-31", "1970"},
		{month, "", "2026-01-17T06:00:00Z", "2026-01-17T06:00"},
	} {
		_, err := calendar.New(test.period, test.zone, test.start)
		assert.ErrorContains(t, err, test.says)
	}
}
