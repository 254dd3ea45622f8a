package convert_test

import (
	"archive/zip"
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
)

// archive returns an archive of files: the name of each and what it holds, by turns.
func archive(t *testing.T, files ...string) convert.File {
	t.Helper()
	var data bytes.Buffer
	w := zip.NewWriter(&data)
	for i := 0; i < len(files); i += 2 {
		file, err := w.Create(files[i])
		require.NoError(t, err)
		_, err = file.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return convert.File{Name: "nacos.zip", Data: data.Bytes()}
}

func TestArchiveOfNacosIsConverted(t *testing.T) {
	c := convert.Convert(archive(t,
		"SENTINEL_GROUP/a-flow-rules", "\ufeff"+`[{"resource": "a", "grade": 1, "count": 5}]`,
		"SENTINEL_GROUP/a-degrade-rules", `[{"resource": "a", "grade": 1, "count": 0.5, "timeWindow": 10}, {"resource": ""}]`,
		"DEFAULT_GROUP/a.yaml", "server:\n  port: 1\n",
		"DEFAULT_GROUP/a.properties", "a=b\n",
		".metadata.yml", "metadata: []\n",
	), convert.File{Name: "more.json", Data: []byte(`[{"resource": "b", "grade": 1, "count": 7}]`)})
	assert.Len(t, c.Rules.Flow, 2)
	assert.Len(t, c.Rules.Breaker, 1)
	var found []string
	for _, f := range c.Findings {
		if f.Kind != convert.Differs {
			found = append(found, f.String())
		}
	}
	assert.Equal(t, []string{
		"nacos.zip/SENTINEL_GROUP/a-degrade-rules:1:65: left out: there is neither a threshold (Go) nor a count (Java): write how many calls may pass, 0 to block all",
		"nacos.zip/SENTINEL_GROUP/a-degrade-rules:1:78: left out: the resource is missing: name what the rule guards",
		"nacos.zip/DEFAULT_GROUP/a.yaml:1:1: understood: it is no JSON, as rules of Sentinel are, and is not read",
		"nacos.zip/DEFAULT_GROUP/a.properties:1:1: understood: it is no JSON, as rules of Sentinel are, and is not read",
	}, found)
	document, err := c.YAML()
	require.NoError(t, err)
	assert.Contains(t, string(document), "#   nacos.zip\n#   more.json\n")
}

func TestArchiveThatCannotBeReadIsSaidToBe(t *testing.T) {
	broken := archive(t, "a", `[{"resource": "a", "count": 5}]`)
	broken.Data = broken.Data[:len(broken.Data)/2]
	long := archive(t, "a", string(make([]byte, 17<<20)))
	for _, file := range []convert.File{broken, long} {
		c := convert.Convert(file)
		require.Len(t, c.Findings, 1)
		assert.Equal(t, convert.Unreadable, c.Findings[0].Kind)
		assert.Contains(t, c.Findings[0].String(), "nacos.zip:1:1: unreadable: the archive cannot be read: ")
	}
}

func TestConfigMapsAreConvertedByWhatTheyHave(t *testing.T) {
	c := convertFile(`apiVersion: v1
kind: ConfigMap
metadata: {name: ratelimit}
data:
  config.yaml: |
    domain: ratelimit
    descriptors:
      - key: PATH
        rate_limit: {unit: minute, requests_per_unit: 100}
  README: text
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
---
kind: List
items:
  - kind: ConfigMap
    metadata: {name: sentinel}
    data:
      flow: '[{"resource": "r", "grade": 1, "count": 5}]'
      nginx.conf: |
        http {
          limit_conn_zone $binary_remote_addr zone=a:1m;
          limit_conn a 3;
          limit_conn b 3;
        }
  - kind: ConfigMap
    metadata: {name: empty}
`)
	assert.Len(t, c.Rules.HotParam, 2)
	assert.Len(t, c.Rules.Flow, 1)
	var found []string
	for _, f := range c.Findings {
		if f.Kind != convert.Differs {
			found = append(found, f.String())
		}
	}
	assert.Equal(t, []string{
		"f/ratelimit/README:1:1: understood: it is no JSON, as rules of Sentinel are, and is not read",
		`f/sentinel/nginx.conf:4:3: rule on "nginx": left out: the zone "b" is not in this file: convert both together`,
	}, found)
}
