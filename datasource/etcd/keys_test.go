package etcd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/etcd"
)

func TestOtherKeysOfAnApplicationAreOutsideTheDocuments(t *testing.T) {
	want := etcd.Keys{
		Documents: "/penstock/shop/", History: "/penstock/shop.history/", Instances: "/penstock/shop.instances/",
		Lists: "/penstock/shop.lists/", Fleet: "/penstock/shop.fleet/",
	}
	for _, prefix := range []string{"/penstock/shop", "/penstock/shop/", etcd.Prefix("shop")} {
		keys, err := etcd.KeysOf(prefix)
		require.NoError(t, err)
		assert.Equal(t, want, keys)
	}
	first, end := want.DocumentRange()
	for _, key := range []string{want.Documents + "a", want.Documents + "\xff"} {
		assert.True(t, first <= key && key < end, key)
	}
	for _, key := range []string{want.Documents, want.History + "a", want.Instances + "a", want.Lists + "a", want.Fleet + "a", "/penstock/shopping/a"} {
		assert.False(t, first <= key && key < end, key)
	}
}

func TestReservedAndEmptyPrefixesAreErrors(t *testing.T) {
	for prefix, says := range map[string]string{
		"":                          "the prefix is empty",
		"//":                        "the prefix is empty",
		"/penstock//":               "empty part",
		"/penstock/shop//":          "empty part",
		"/penstock/shop.history":    "is not for documents",
		"/penstock/shop.instances/": "is not for documents",
		"/penstock/shop.lists":      "is not for documents",
		"/penstock/shop.fleet":      "is not for documents",
	} {
		_, err := etcd.KeysOf(prefix)
		require.ErrorContains(t, err, says, prefix)
	}
}

// For every prefix: no key is in the range of the documents, and none is a prefix
// of another.
func FuzzKeysOf(f *testing.F) {
	for _, prefix := range []string{"", "/", "/penstock/shop", "a.history/b", "/a.instances/", "a//", ".history", "\xff"} {
		f.Add(prefix)
	}
	f.Fuzz(func(t *testing.T, prefix string) {
		keys, err := etcd.KeysOf(prefix)
		if err != nil {
			assert.Empty(t, keys)
			return
		}
		first, end := keys.DocumentRange()
		all := []string{keys.Documents, keys.History, keys.Instances, keys.Lists, keys.Fleet}
		for i, one := range all {
			assert.True(t, strings.HasSuffix(one, "/"))
			assert.False(t, first <= one && one < end, "%q is a document", one)
			for j, other := range all {
				assert.True(t, i == j || !strings.HasPrefix(one, other), "%q is below %q", one, other)
			}
		}
		again, err := etcd.KeysOf(keys.Documents)
		require.NoError(t, err)
		assert.Equal(t, keys, again)
	})
}
