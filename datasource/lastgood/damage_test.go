//go:build unix

package lastgood_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

// rewrite changes the bytes of a copy.
func rewrite(change func(data []byte) []byte) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, change(data), 0o600))
	}
}

// reseal changes the contents of a copy and corrects its checksum.
func reseal(old, fresh string) func(t *testing.T, path string) {
	return rewrite(func(data []byte) []byte {
		_, body, _ := bytes.Cut(data, []byte("\n"))
		return seal(bytes.ReplaceAll(body, []byte(old), []byte(fresh)))
	})
}

func by(copied lastgood.Copy) func(t *testing.T, path string) {
	return func(t *testing.T, path string) { require.NoError(t, copied.Save(path)) }
}

// damages are the ways to damage a copy, with the errors that they cause.
func damages() map[string]struct {
	damage func(t *testing.T, path string)
	says   string
} {
	const changed = "its checksum does not match: it was cut off or changed since it was written"
	const none = "it is no copy of rules, or was cut off or changed at its beginning"
	documents := []core.Document{rule("a", "1", 1)}
	return map[string]struct {
		damage func(t *testing.T, path string)
		says   string
	}{
		"empty":       {rewrite(func([]byte) []byte { return nil }), none},
		"zeros":       {rewrite(func(data []byte) []byte { return make([]byte, len(data)) }), none},
		"not JSON":    {rewrite(func([]byte) []byte { return []byte("flow: []\n") }), none},
		"other JSON":  {rewrite(func([]byte) []byte { return []byte("{\"format\": 1}\n{}") }), none},
		"cut off":     {rewrite(func(data []byte) []byte { return data[:len(data)/2] }), changed},
		"one byte":    {rewrite(func(data []byte) []byte { return data[:len(data)-1] }), changed},
		"more of it":  {rewrite(func(data []byte) []byte { return append(data, '\n') }), changed},
		"first line":  {rewrite(func(data []byte) []byte { return data[:bytes.IndexByte(data, '\n')+1] }), changed},
		"edited":      {rewrite(func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("limit: 1"), []byte("limit: 2")) }), changed},
		"checksum":    {rewrite(func(data []byte) []byte { return bytes.Replace(data, []byte(`"sha256":"`), []byte(`"sha256":"0`), 1) }), changed},
		"later":       {rewrite(func(data []byte) []byte { return bytes.Replace(data, []byte(`"format":1`), []byte(`"format":2`), 1) }), "it has format 2 and this program reads 1: a later version wrote it"},
		"later still": {rewrite(func([]byte) []byte { return []byte(`{"penstock":"last good copy of rules","format":17}`) }), "it has format 17 and this program reads 1"},
		"too large":   {func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, lastgood.MaxSize+1)) }, "it has more than 67108864 bytes"},
		"far too large": {func(t *testing.T, path string) {
			require.NoError(t, os.Truncate(path, 1<<40))
		}, "it has more than 67108864 bytes"},
		"other app":     {by(lastgood.Copy{App: "mail", Source: "script", At: begin(), Documents: documents}), `it is of the application "mail", not of "shop"`},
		"other source":  {by(lastgood.Copy{App: "shop", Source: "etcd:/x/", At: begin(), Documents: documents}), `it is of the source "etcd:/x/"`},
		"twice":         {by(lastgood.Copy{App: "shop", Source: "script", At: begin(), Documents: append(documents, documents...)}), `has "a" twice`},
		"no time":       {reseal("2030-01-01T00:00:00Z", "1970-01-01T00:00:00Z"), "cannot be of 1970"},
		"far time":      {reseal("2030-01-01T00:00:00Z", "9999-01-01T00:00:00Z"), "cannot be of 9999"},
		"unknown field": {reseal(`"revision"`, `"revisions"`), "no program wrote it like that"},
		"wrong type":    {reseal(`"app": "shop"`, `"app": 7`), "no program wrote it like that"},
		"null":          {rewrite(func([]byte) []byte { return seal([]byte("null")) }), "cannot be of 0001"},
		"others write":  {func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o602)) }, "its group or others may write to it (-rw-----w-), it may not be what was saved; if you know that it is, run chmod go-w "},
		"group writes":  {func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o660)) }, "its group or others may write to it (-rw-rw----)"},
		"link": {func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, path+"2"))
			require.NoError(t, os.Symlink(path+"2", path))
		}, "it is no regular file (Lrwxrwxrwx)"},
		"directory": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}, "it is no regular file (drwx------)"},
		"pipe": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o600))
		}, "it is no regular file (prw-------)"},
		"somebody else's": {func(t *testing.T, path string) {
			if os.Geteuid() != 0 {
				t.Skip("only root may give files away")
			}
			require.NoError(t, os.Chown(path, 12345, -1))
		}, "it belongs to user 12345, and this process runs as user 0; if it is to be believed, run chown 0 "},
		"unreadable": {func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			require.NoError(t, os.Chmod(path, 0))
		}, "permission denied; run chmod u+r "},
	}
}

func TestDamagedCopyIsReportedIgnoredAndReplaced(t *testing.T) {
	for name, test := range damages() {
		t.Run(name, func(t *testing.T) {
			path := copyPath(t)
			savedBy(t, path, twoDocuments())
			synctest.Test(t, func(t *testing.T) {
				s := prepare(t, path, begin())
				test.damage(t, path)
				s.follow()
				s.lose("no route")
				require.False(t, s.status().Ready)
				require.Empty(t, s.limits())
				s.lose("no route")
				require.Equal(t, 1, s.log.count("level=ERROR", "cannot be used and is ignored", "source=script"))
				require.Equal(t, 1, s.log.count("lastgood: "+path+": ", strings.ReplaceAll(test.says, `"`, `\"`),
					": restore it or let the next save replace it"), s.log.text.String())

				s.deliver(all(9, rule("c", "3", 9)))
				if name == "directory" {
					require.NoError(t, os.Remove(path))
				}
				s.drain()
				s.requireSaved(map[string]string{"c": "3"})
				require.True(t, identity(t, path).Mode().IsRegular())
			})
		})
	}
}

// A copy with any bit flipped, or truncated anywhere, is rejected.
func TestCopyWithAnyFlippedBitIsRejected(t *testing.T) {
	path := copyPath(t)
	c := lastgood.Copy{App: "shop", Source: "script", Revision: 7, At: begin(), Documents: []core.Document{
		rule("a", "1", 5), {Name: "\xff", Data: []byte{0, 0xff, '\n'}},
	}}
	require.NoError(t, c.Save(path))
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range sound {
		_, err := lastgood.Decode(sound[:i])
		require.Error(t, err, "the first %d bytes", i)
		for bit := range 8 {
			data := bytes.Clone(sound)
			data[i] ^= 1 << bit
			_, err := lastgood.Decode(data)
			require.Error(t, err, "bit %d of byte %d", bit, i)
		}
	}
	_, err = lastgood.Decode(sound)
	require.NoError(t, err)
}

func TestCopyReadableByOthersIsAccepted(t *testing.T) {
	path := copyPath(t)
	savedBy(t, path, twoDocuments())
	require.NoError(t, os.Chmod(path, 0o644))
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin())
		s.lose("no route")
		assert.Len(t, s.limits(), 2)
		s.deliver(all(9))
		s.drain()
		assert.Equal(t, os.FileMode(0o600), identity(t, path).Mode())
	})
}

func TestCopyInALinkedDirectoryIsAccepted(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	path := filepath.Join(link, "rules.copy")
	savedBy(t, path, twoDocuments())
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin())
		s.lose("no route")
		assert.Len(t, s.limits(), 2)
	})
}

func TestSuggestedCommandMakesTheCopyUsable(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "it's a directory; $HOME")
	require.NoError(t, os.Mkdir(directory, 0o700))
	path := filepath.Join(directory, "rules.copy")
	savedBy(t, path, twoDocuments())
	require.NoError(t, os.Chmod(path, 0o666))
	_, err := lastgood.Load(path)
	require.Error(t, err)
	_, command, ok := strings.Cut(err.Error(), "; if you know that it is, run ")
	require.True(t, ok, err)
	command, _, _ = strings.Cut(command, ": restore it")
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", command).Run(), command)
	_, err = lastgood.Load(path)
	require.NoError(t, err)
}
