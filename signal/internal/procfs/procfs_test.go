package procfs

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	tests := map[string]struct {
		want uint64
		ok   bool
	}{
		"7": {7, true}, " 7\n": {7, true}, "18446744073709551615": {math.MaxUint64, true},
		"18446744073709551616": {math.MaxUint64, true}, "": {}, "-1": {}, "+1": {}, "7 8": {}, "0x7": {}, "max": {}, "1.5": {},
	}
	for text, test := range tests {
		n, err := Uint(text)
		require.Equal(t, test.ok, err == nil, "%q", text)
		require.Equal(t, test.want, n, "%q", text)
	}
}

func TestFields(t *testing.T) {
	const text = "usage_usec 5\nusage 6\nMemTotal:       7 kB\nempty\n\nempty:\nlast 8"
	for key, want := range map[string]uint64{"usage_usec": 5, "usage": 6, "MemTotal": 7, "last": 8} {
		n, err := Field(text, key)
		require.NoError(t, err)
		require.Equal(t, want, n, key)
	}
	for _, key := range []string{"empty", "usage_", "Mem", "none"} {
		_, err := Field(text, key)
		require.ErrorContains(t, err, key)
	}
}

func TestFileThatIsTooLargeIsAnError(t *testing.T) {
	root := fstest.MapFS{
		"proc/large": {Data: make([]byte, MaxSize+1)}, "proc/full": {Data: make([]byte, MaxSize)},
		"proc/x": {Data: []byte("x")}, "proc/folder/file": {},
	}
	_, err := Read(root, "proc/large")
	require.ErrorContains(t, err, "read /proc/large: it has more than 8388608 bytes")
	text, err := Read(root, "proc/full")
	require.NoError(t, err)
	require.Len(t, text, MaxSize)
	_, err = Read(root, "proc/none")
	require.EqualError(t, err, "read /proc/none: file does not exist")
	_, err = Read(root, "proc/folder")
	require.ErrorContains(t, err, "read /proc/folder: ")
	_, err = ReadUint(root, "proc/x")
	require.EqualError(t, err, `read /proc/x: "x" is no number`)
	_, err = ReadUint(root, "proc/none")
	require.EqualError(t, err, "read /proc/none: file does not exist")
	_, err = ReadField(root, "proc/x", "key")
	require.EqualError(t, err, `read /proc/x: it has no "key"`)
	_, err = ReadField(root, "proc/none", "key")
	require.EqualError(t, err, "read /proc/none: file does not exist")
}
