package httpsource

import (
	"crypto/sha256"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"documents": [{"name": "a.yaml", "sha256": "` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"documents": []}`))
	f.Add([]byte(`{"documents": [{"name": "../a"}, {"name": "a"}, {"name": "a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseIndex(data)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range entries {
			assert.True(t, fs.ValidPath(e.name) && !seen[e.name], "%q", e.name)
			seen[e.name] = true
			if len(e.digest) > 0 {
				assert.Len(t, e.digest, sha256.Size)
			}
		}
	})
}
