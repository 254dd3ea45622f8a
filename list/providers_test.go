package list_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/list"
)

// texts returns a list of texts.
func texts(t *testing.T, entries ...string) *list.List {
	t.Helper()
	var b list.Builder
	for _, entry := range entries {
		require.NoError(t, b.AddText(entry))
	}
	l, err := b.Build(t.Context())
	require.NoError(t, err)
	return l
}

func TestFirstProviderOfANameIsInForceWhateverCameFirst(t *testing.T) {
	code, first, second, third := texts(t), texts(t), texts(t), texts(t)
	a, b, c := list.Provider{Source: "a", Document: "2"}, list.Provider{Source: "b", Document: "1"}, list.Provider{Source: "b", Document: "2"}
	r := list.NewRegistry()
	h := r.Handle("l")
	assert.True(t, r.Put("l", c, list.Version{List: third}))
	assert.True(t, r.Put("l", a, list.Version{List: first}))
	assert.False(t, r.Put("l", b, list.Version{List: second}))
	assert.Same(t, first, h.List())
	r.Set("l", code)
	assert.Same(t, code, h.List())
	var order []string
	for _, s := range r.Status() {
		order = append(order, s.Source+s.Document)
		assert.Equal(t, s.Source == "", s.InForce)
	}
	assert.Equal(t, []string{"", "a2", "b1", "b2"}, order)

	r.Set("l", nil)
	assert.Same(t, first, h.List())
	r.Withdraw("l", a)
	assert.Same(t, second, h.List())
	r.Withdraw("l", c)
	assert.Same(t, second, h.List())
	r.Withdraw("l", b)
	assert.Nil(t, h.List())
	assert.Empty(t, r.Status())
	r.Withdraw("l", b)
	assert.Nil(t, h.List())
}

func TestRejectedVersionLeavesTheLastGoodOneInForce(t *testing.T) {
	r, from := list.NewRegistry(), list.Provider{Source: "a", Document: "1"}
	good := texts(t, "x", "y")
	r.Put("l", from, list.Version{List: good, Digest: [32]byte{7}, At: 5})
	r.Judge("l", from, errors.New("bad"), 8)
	r.Judge("l", from, errors.New("worse"), 9)
	s := r.Status()[0]
	require.EqualError(t, s.Err, "worse")
	s.Err = nil
	assert.Equal(t, list.Status{
		Name: "l", Provider: from, InForce: true, Entries: 2, Size: good.Size(), Digest: [32]byte{7}, Since: 5, FailedAt: 8,
	}, s)
	assert.Same(t, good, r.Get("l"))

	r.Judge("l", from, nil, 10)
	assert.Zero(t, r.Status()[0].FailedAt)
	r.Judge("other", from, errors.New("bad"), 8)
	assert.Nil(t, r.Get("other"))
	assert.False(t, r.Status()[1].InForce)
}

func TestNamesOfListsAreNamesOfFiles(t *testing.T) {
	for name, says := range map[string]string{
		"scrapers": "", "größe 2": "", strings.Repeat("x", list.MaxName): "",
		"": "is empty", ".hidden": "dot", "..": "dot", "a/b": "slashes", `a\b`: "slashes", "a\x00": "control", "\xff": "UTF-8",
		strings.Repeat("x", list.MaxName+1): "shorten it to 256",
	} {
		if err := list.CheckName(name); says == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, says, name)
		}
	}
}
