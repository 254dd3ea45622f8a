package store

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSnapshotsKeepEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var documents []Document
		for range rapid.IntRange(0, 5).Draw(t, "documents") {
			documents = append(documents, Document{
				Name: string(rapid.SliceOf(rapid.Byte()).Draw(t, "name")), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			})
		}
		packed, err := pack(documents)
		require.NoError(t, err)
		unpacked, err := unpack(packed)
		require.NoError(t, err)
		assert.True(t, equal(documents, unpacked), "%v, %v", documents, unpacked)
	})
}

func FuzzUnpack(f *testing.F) {
	packed, err := pack([]Document{{Name: "a.yaml", Data: []byte("flow: []")}, {Name: "b"}})
	require.NoError(f, err)
	f.Add(packed)
	f.Add(packed[:len(packed)/2])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := unpack(data)
		if err != nil {
			assert.Empty(t, documents)
			return
		}
		again, err := pack(documents)
		require.NoError(t, err)
		unpacked, err := unpack(again)
		require.NoError(t, err)
		assert.True(t, equal(documents, unpacked))
	})
}

func equal(a, b []Document) bool {
	return slices.EqualFunc(a, b, func(a, b Document) bool { return a.Name == b.Name && string(a.Data) == string(b.Data) })
}
