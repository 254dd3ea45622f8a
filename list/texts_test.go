package list

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Places of texts have 32 bits. What has none is refused rather than mistaken for another
// text.
func TestTextsBeyondFourGiBAreRefused(t *testing.T) {
	full := make([]byte, 1<<pieceBits-lengthSize-1)
	var b Builder
	b.list.texts.pieces = make([][]byte, maxPieces)
	b.list.texts.pieces[maxPieces-1] = full
	require.NoError(t, b.AddText("x"), "there is space for one byte")
	require.ErrorContains(t, b.AddText("y"), "list: too many entries: the texts have more than 4 GiB together")

	b = Builder{max: 1}
	require.NoError(t, b.AddText(strings.Repeat("x", maxText)))
	require.ErrorContains(t, b.AddText("y"), "list: too many entries: the most is 1")
}
