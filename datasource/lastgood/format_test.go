package lastgood_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

// sample of older versions must stay readable.
const sample = `{"penstock":"last good copy of rules","format":1,"sha256":"SUM"}
{
 "app": "shop",
 "source": "etcd:/penstock/shop/",
 "revision": 7,
 "currentAt": "2030-01-01T00:00:00.000000001Z",
 "documents": [
  {
   "name": "a.yaml",
   "revision": 5,
   "data": "flow: [{resource: a, limit: 1}] # \u2028 <é>\n"
  },
  {
   "name": {
    "base64": "/w=="
   },
   "revision": 0,
   "data": {
    "base64": "AP8="
   }
  }
 ]
}
`

func sampleCopy() lastgood.Copy {
	return lastgood.Copy{
		App: "shop", Source: "etcd:/penstock/shop/", Revision: 7, At: begin().Add(1), Documents: []core.Document{
			{Name: "a.yaml", Revision: 5, Data: []byte("flow: [{resource: a, limit: 1}] # \u2028 <é>\n")},
			{Name: "\xff", Data: []byte{0, 0xff}},
		},
	}
}

// seal returns a copy with the body and its checksum.
func seal(body []byte) []byte {
	head := fmt.Sprintf("{\"penstock\":\"last good copy of rules\",\"format\":1,\"sha256\":\"%x\"}\n", sha256.Sum256(body))
	return append([]byte(head), body...)
}

func TestFileFormatIsStable(t *testing.T) {
	path := copyPath(t)
	require.NoError(t, sampleCopy().Save(path))
	_, body, _ := bytes.Cut([]byte(sample), []byte("\n"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(seal(body)), string(data))

	read, err := lastgood.Decode(seal(body))
	require.NoError(t, err)
	assert.Equal(t, sampleCopy(), read)
}

func TestBytesAreRestoredExactly(t *testing.T) {
	path := copyPath(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		c := lastgood.Copy{
			App: text.Draw(t, "app"), Source: text.Draw(t, "source"), Revision: rapid.Int64().Draw(t, "revision"),
			At: time.Unix(0, rapid.Int64Min(1).Draw(t, "at")).UTC(),
		}
		for _, name := range rapid.SliceOfDistinct(text, rapid.ID).Draw(t, "names") {
			c.Documents = append(c.Documents, core.Document{
				Name: name, Revision: rapid.Int64().Draw(t, "version"), Data: []byte(text.Draw(t, "data")),
			})
		}
		require.NoError(t, c.Save(path))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		read, err := lastgood.Decode(data)
		require.NoError(t, err)
		require.Equal(t, c, read)
	})
}
