package listformat_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
)

const keys = "/penstock/shop.lists/"

func TestKeysOfVersionsAndListsAreApart(t *testing.T) {
	one, other := listformat.Digest{1}, listformat.Digest{2}
	assert.True(t, strings.HasPrefix(listformat.ChunkKey(keys, "l", one, 7), listformat.VersionKeys(keys, "l", one)))
	assert.False(t, strings.HasPrefix(listformat.ChunkKey(keys, "l", one, 7), listformat.VersionKeys(keys, "l", other)))
	assert.False(t, strings.HasPrefix(listformat.ChunkKeys(keys, "ll"), listformat.ChunkKeys(keys, "l")))
	assert.False(t, strings.HasPrefix(listformat.ChunkKeys(keys, "l"), listformat.ManifestKeys(keys)))
	last := listformat.NewManifest(one, listformat.MaxSize).Chunks - 1
	assert.Less(t, listformat.ChunkKey(keys, "l", one, last-1), listformat.ChunkKey(keys, "l", one, last), "keys sort by number")
}

func TestChunksOfAManifestAddUpToItsSize(t *testing.T) {
	for _, size := range []int64{
		1, listformat.ChunkSize - 1, listformat.ChunkSize, listformat.ChunkSize + 1, 3 * listformat.ChunkSize, listformat.MaxSize,
	} {
		m := listformat.NewManifest(listformat.Digest{1}, size)
		var sum int64
		for i := range m.Chunks {
			length := m.ChunkLength(i)
			require.Positive(t, length)
			require.LessOrEqual(t, length, int64(listformat.ChunkSize))
			sum += length
		}
		assert.Equal(t, size, sum)
	}
}

// A chunk that unpacks to far more than it may does not take the memory for it.
func TestChunkThatIsTooLongIsRefused(t *testing.T) {
	packed, err := listformat.Pack(make([]byte, 64<<20))
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = listformat.Unpack(packed, 1000)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "does not have the 1000 bytes")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestManifestWithoutDigestIsRefused(t *testing.T) {
	_, err := listformat.ParseManifest([]byte(`{"version":1,"size":1,"chunks":1}`))
	require.EqualError(t, err, "the manifest has no digest: push the list again")
}

// A manifest that is accepted has chunks that add up, and is the same when it is written
// and read again.
func FuzzParseManifest(f *testing.F) {
	m := listformat.NewManifest(sha256.Sum256(nil), 3<<20)
	value, err := json.Marshal(m)
	require.NoError(f, err)
	for _, seed := range []string{string(value), "", "{}", "null", `{"version":1,"size":1,"chunks":1}`, `{"version":1,"digest":7}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		m, err := listformat.ParseManifest(value)
		if err != nil {
			assert.Empty(t, m)
			return
		}
		assert.Equal(t, listformat.NewManifest(m.Digest, m.Size).Chunks, m.Chunks)
		assert.Positive(t, m.ChunkLength(m.Chunks-1))
		again, err := json.Marshal(m)
		require.NoError(t, err)
		parsed, err := listformat.ParseManifest(again)
		require.NoError(t, err)
		assert.Equal(t, m.Digest, parsed.Digest)
		assert.Equal(t, m.Author, parsed.Author)
	})
}

// What is unpacked has the length that was asked for, and packed texts come back.
func FuzzUnpack(f *testing.F) {
	packed, err := listformat.Pack([]byte("192.0.2.1\n"))
	require.NoError(f, err)
	f.Add(packed, int64(10))
	f.Add([]byte("192.0.2.1\n"), int64(10))
	f.Fuzz(func(t *testing.T, data []byte, length int64) {
		length %= listformat.ChunkSize + 1
		if text, err := listformat.Unpack(data, length); err == nil {
			assert.Len(t, text, int(length))
		}
		packed, err := listformat.Pack(data)
		require.NoError(t, err)
		text, err := listformat.Unpack(packed, int64(len(data)))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, text))
	})
}
