package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/etcd"
)

func TestDocumentNamesMustBeLikePaths(t *testing.T) {
	for _, name := range []string{"a", "orders.yaml", "a/b/c.json", "…", "a b", ".hidden", "..a", strings.Repeat("x", MaxName)} {
		assert.NoError(t, Document{Name: name}.check(), name)
	}
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\nb", "a\x00", "\x7f", "\u0085", "\xff",
		strings.Repeat("x", MaxName+1),
	} {
		assert.ErrorContains(t, Document{Name: name}.check(), "store: the name ", "%q", name)
	}
}

func TestAllMistakesInDocumentsAreReported(t *testing.T) {
	_, err := sorted([]Document{
		{Name: "twice"},
		{Name: "a//b"},
		{Name: "large", Data: make([]byte, etcd.MaxDocumentSize+1)},
		{Name: "largest", Data: make([]byte, etcd.MaxDocumentSize)},
		{Name: "twice", Data: []byte("1")},
	})
	require.ErrorContains(t, err, `store: the name "a//b" has a part that is empty`)
	require.ErrorContains(t, err, `store: document "large" has 1048577 bytes, at most 1048576 are read: split it`)
	require.ErrorContains(t, err, `store: the name "twice" is given twice: leave one out`)
	assert.Equal(t, 2, strings.Count(err.Error(), "\n"), "three mistakes")
}

func TestAllMistakesInAPushAreReported(t *testing.T) {
	_, err := Push{Documents: []Document{{}}, Keep: -1}.complete()
	for _, says := range []string{"Push.Expect is 0", "Push.Keep is negative", `the name ""`} {
		assert.ErrorContains(t, err, says)
	}
	push, err := Push{Documents: []Document{{Name: "b"}, {Name: "a"}}, Expect: 1}.complete()
	require.NoError(t, err)
	assert.Equal(t, []Document{{Name: "a"}, {Name: "b"}}, push.Documents)
	assert.Equal(t, 100, push.Keep)
}
