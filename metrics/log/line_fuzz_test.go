package metriclog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever a line is, reading it does not panic; what was read is written and read again as the
// same.
func FuzzParseLine(f *testing.F) {
	f.Add("946684800000|2000-01-01 00:00:00|orders|3|2|3|0|0|0|1|0")
	f.Add("-1|x||0|0|0|0|0|0|0|18446744073709551615")
	f.Add("946684800000|2000-01-01")
	f.Fuzz(func(t *testing.T, text string) {
		line, err := parseLine(text)
		if err != nil {
			return
		}
		written := string(line.appendTo(nil, time.UTC))
		again, err := parseLine(strings.TrimSuffix(written, "\n"))
		require.NoError(t, err)
		line.Resource = writable(line.Resource)
		require.Equal(t, line, again)
	})
}

func TestNamesAreWrittenWithoutWhatEndsAField(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "orders", "a|b\r\n\x00c": "a_b___c", "a\xff": "a\uFFFD",
		strings.Repeat("ü", 3000): strings.Repeat("ü", 512), "x" + strings.Repeat("ü", 3000): "x" + strings.Repeat("ü", 511),
	} {
		require.Equal(t, want, writable(name))
	}
}
