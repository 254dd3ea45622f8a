package lastgood_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/lastgood"
)

// Reading any bytes does not panic, and what is returned has the checksum in the
// file. Each input is tried as it is and as the body of a copy with a correct
// checksum.
func FuzzReadCopy(f *testing.F) {
	_, body, _ := bytes.Cut([]byte(sample), []byte("\n"))
	f.Add([]byte(sample))
	f.Add(seal(body))
	f.Add(body)
	f.Add([]byte(`{"documents":[{"name":null,"data":{"base64":""}}],"currentAt":"2030-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		assertChecked(t, data)
		assertChecked(t, seal(data))
	})
}

func assertChecked(t *testing.T, data []byte) {
	c, err := lastgood.Decode(data)
	if err != nil {
		return
	}
	head, body, _ := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(body)
	require.Contains(t, string(head), hex.EncodeToString(sum[:]))
	require.Positive(t, c.At.UnixNano())

	// What it returns can be saved and read again.
	path := t.TempDir() + "/copy"
	require.NoError(t, c.Save(path))
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	again, err := lastgood.Decode(data)
	require.NoError(t, err)
	assert.Equal(t, c, again)
}
