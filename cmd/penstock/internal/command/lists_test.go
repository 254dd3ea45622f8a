package command_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// listFile returns the path of a file with a list.
func listFile(t *testing.T, text string) string {
	t.Helper()
	return filepath.Join(tree(t, map[string]string{"l.txt": text}), "l.txt")
}

// longList returns the text of a list of 3400 entries, which takes four chunks.
func longList() string {
	var text strings.Builder
	for i := range 3400 {
		fmt.Fprintf(&text, "%06d-%s\n", i, strings.Repeat("x", 980))
	}
	return text.String()
}

func TestListsArePushedListedPulledAndDeleted(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	assert.Equal(t, answer{"there are no lists below /penstock/shop.lists/\n", "", command.ExitDone}, u.run(t, "lists", "list"))
	text := longList()
	path := listFile(t, text)
	got := u.run(t, "lists", "push", "tokens", path, "--yes", "--author", "alice", "--message", "from the feed")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, "list tokens: new, 3400 entries\nlist tokens in etcd is at revision 6 now\n", got.out)
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "scrapers", listFile(t, "10.0.0.0/8\n"), "--yes", "--author", "bob").code)

	got = u.run(t, "lists", "push", "tokens", path, "--yes")
	assert.Equal(t, answer{"list tokens: no differences, 3400 entries\nnothing to write: list tokens is at revision 6\n", "", command.ExitDone}, got)
	golden(t, "lists.txt", u.run(t, "lists", "list").out, "")
	timeOfPush := regexp.MustCompile(`"time": ".*"`)
	golden(t, "lists.json", timeOfPush.ReplaceAllString(u.run(t, "lists", "list", "-o", "json").out, `"time": "…"`), "")
	assert.Empty(t, u.stored(t), "lists are no rule documents")

	got = u.run(t, "lists", "pull", "tokens")
	assert.Equal(t, answer{text, "", command.ExitDone}, got)
	to := filepath.Join(t.TempDir(), "pulled.txt")
	got = u.run(t, "lists", "pull", "tokens", to)
	assert.Equal(t, answer{to + ": 3400 entries of revision 6\n", "", command.ExitDone}, got)
	assert.Equal(t, map[string]string{"pulled.txt": text}, read(t, filepath.Dir(to)))
	got = u.run(t, "lists", "pull", "scrapers", to)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "replace it with --force")
	require.Equal(t, command.ExitDone, u.run(t, "lists", "pull", "scrapers", to, "--force").code)
	assert.Equal(t, map[string]string{"pulled.txt": "10.0.0.0/8\n"}, read(t, filepath.Dir(to)))

	got = u.run(t, "lists", "delete", "tokens", "--yes")
	assert.Equal(t, answer{"list tokens is deleted: it had 3400 entries (revision 6)\n", "", command.ExitDone}, got)
	left, err := server.Client().Get(t.Context(), "/penstock/shop.lists/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	assert.Equal(t, int64(2+1+4), left.Count, "the manifest and the one chunk of the other list, the history and the chunks of this one")
}

func TestListThatIsNotThere(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	for _, args := range [][]string{{"pull", "l"}, {"pull", "l", filepath.Join(t.TempDir(), "x")}, {"delete", "l", "--yes"}} {
		got := u.run(t, append([]string{"lists"}, args...)...)
		assert.Equal(t, answer{"", "penstock: store: there is no such list: \"l\"\n", command.ExitNo}, got)
		if len(args) == 3 && args[0] == "pull" {
			assert.Empty(t, read(t, filepath.Dir(args[2])), "no file is left")
		}
	}
}

func TestListWithMistakesIsNotPushed(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	path := listFile(t, "10.0.0.0/8\n10.1.2.3/8\n300.0.0.0/8\n")
	got := u.run(t, "lists", "push", "l", path, "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, path+":2: ")
	assert.Contains(t, got.err, path+":3: ")
	assert.Contains(t, got.err, "2 mistakes in "+path)
	for text, says := range map[string]string{"": "is empty"} {
		got = u.run(t, "lists", "push", "l", listFile(t, text), "--yes")
		assert.Equal(t, command.ExitFailed, got.code)
		assert.Contains(t, got.err, says)
	}
	got = u.run(t, "lists", "push", "l", t.TempDir(), "--yes")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "is no regular file")
	assert.Contains(t, u.run(t, "lists", "list").out, "there are no lists")
}

func TestListCommandsAskOnATerminal(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, "a\n"), "--yes").code)
	other := listFile(t, "b\nc\n")
	u.terminal = true
	u.types = "n\n"
	got := u.run(t, "lists", "push", "l", other)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Equal(t, "list l: 1 → 2 entries\n", got.out)
	assert.Contains(t, got.err, "Write it to /penstock/shop.lists/ at "+u.env["PENSTOCK_ENDPOINTS"]+"? [y/N] ")
	got = u.run(t, "lists", "delete", "l")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "Delete list l with 1 entry from /penstock/shop.lists/? [y/N] ")
	assert.Contains(t, got.err, "nothing was deleted")
	assert.Equal(t, "a\n", u.run(t, "lists", "pull", "l").out)

	assert.Equal(t, answer{"list l: 1 → 2 entries\n", "", command.ExitDone}, u.run(t, "lists", "push", "l", other, "--dry-run"))
	assert.Equal(t, "a\n", u.run(t, "lists", "pull", "l").out)
	u.types = "y\n"
	assert.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", other).code)
	assert.Equal(t, "b\nc\n", u.run(t, "lists", "pull", "l").out)
	assert.Equal(t, command.ExitDone, u.run(t, "lists", "delete", "l").code)
}

func TestPushOfAListThatSomebodyElseHasWrittenExitsWith4(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, "a\n"), "--yes").code)
	for _, args := range [][]string{{"--expect-rev", "2"}, {"--expect-rev", "2", "--dry-run"}} {
		got := u.run(t, append([]string{"lists", "push", "l", listFile(t, "b\n"), "--yes"}, args...)...)
		assert.Equal(t, command.ExitConflict, got.code)
		assert.Contains(t, got.err, `somebody has written or deleted list "l" since revision 2`)
	}
	assert.Equal(t, "a\n", u.run(t, "lists", "pull", "l").out)
}

func TestDamagedListIsShown(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "good", listFile(t, "a\n"), "--yes").code)
	_, err := server.Client().Put(context.Background(), "/penstock/shop.lists/manifest/bad", "x")
	require.NoError(t, err)
	got := u.run(t, "lists", "list")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "bad   damaged")
	assert.Contains(t, got.out, "good  1  ")
	assert.Contains(t, got.err, "key /penstock/shop.lists/manifest/bad: the manifest is damaged")
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "bad", listFile(t, "b\n"), "--yes").code)
	assert.Equal(t, "b\n", u.run(t, "lists", "pull", "bad").out)
	_, err = server.Client().Delete(context.Background(), "/penstock/shop.lists/chunk/", clientv3.WithPrefix())
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "x.txt")
	got = u.run(t, "lists", "pull", "good", to)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "only 0 of the 1 chunks")
	assert.Empty(t, read(t, filepath.Dir(to)))
}

func TestListsOptionReadsTheListsOfADirectory(t *testing.T) {
	rules := one(t, 5)
	for _, args := range [][]string{
		{"validate", rules},
		{"explain", "orders", "--rules", rules},
		{"simulate", "--rules", rules, "--load", filepath.Join(tree(t, map[string]string{"load.yaml": "streams: [orders 1/s for 1s]"}), "load.yaml")},
		{"test", tree(t, map[string]string{"a_test.yaml": "rules: " + rules + "\ncases: [{name: x, load: orders 1/s for 1s, expect: {passed: 1}}]\n"})},
	} {
		good := user{}.run(t, append(args, "--lists", tree(t, map[string]string{"l.txt": "a\n"}))...)
		assert.Equal(t, command.ExitDone, good.code, "%v: %s", args, good.err)
		bad := user{}.run(t, append(args, "--lists", tree(t, map[string]string{"l.txt": "10.0.0.0/8\n10.0.0.0/99\n"}))...)
		assert.Equal(t, command.ExitNo, bad.code, args)
		assert.Contains(t, bad.err, "line 2", args)
		none := user{}.run(t, append(args, "--lists", t.TempDir())...)
		assert.Equal(t, command.ExitFailed, none.code, args)
		assert.Contains(t, none.err, "holds no lists: their names end in .txt or .list", args)
		gone := user{}.run(t, append(args, "--lists", filepath.Join(t.TempDir(), "x"))...)
		assert.Equal(t, command.ExitFailed, gone.code, args)
	}
}

// accessRules returns a directory with rules that name two lists.
func accessRules(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{"access.yaml": `access:
  - {name: no-scrapers, resource: orders, attribute: user, list: scrapers}
  - {name: partners-only, resource: pay, attribute: user, list: partners, listAction: allow}
`})
}

const twoMissing = "penstock: warning: access rule \"no-scrapers\" names list \"scrapers\", which is not %[1]s\n" +
	"penstock: warning: access rule \"partners-only\" names list \"partners\", which is not %[1]s\n"

func TestSimulationUsesTheListsOfADirectory(t *testing.T) {
	load := filepath.Join(tree(t, map[string]string{"load.yaml": `streams:
  - {resource: orders, times: [0, 0, 0], attrs: {user: [eve, ann, ann]}}
  - {resource: pay, times: [0, 0, 0], attrs: {user: [eve, ann, ann]}}
`}), "load.yaml")
	lists := tree(t, map[string]string{"scrapers.txt": "eve\n", "partners.list": "ann\nbob\n"})
	run := func(more ...string) (orders, pay string, got answer) {
		got = user{}.run(t, append([]string{"simulate", "--rules", accessRules(t), "--load", load, "--output", "json"}, more...)...)
		require.Equal(t, command.ExitDone, got.code, got.err)
		passed := regexp.MustCompile(`"resource":"(\w+)","offered":3,"passed":(\d)`).FindAllStringSubmatch(got.out, -1)
		require.Len(t, passed, 2, got.out)
		return passed[0][2], passed[1][2], got
	}
	orders, pay, got := run("--lists", lists)
	assert.Equal(t, []string{"2", "2", ""}, []string{orders, pay, got.err})
	orders, pay, got = run()
	assert.Equal(t, []string{"3", "0"}, []string{orders, pay}, "a missing list denies nobody and allows nobody")
	assert.Equal(t, fmt.Sprintf(twoMissing, "there: --lists names a directory with lists"), got.err)
}

func TestTestsUseTheListsOfADirectory(t *testing.T) {
	suite := tree(t, map[string]string{"a_test.yaml": "rules: " + accessRules(t) + `
cases:
  - name: scrapers are refused
    load: [{resource: orders, times: [0, 0], attrs: {user: [eve, ann]}}]
    expect: {passed: 1}
`})
	lists := tree(t, map[string]string{"scrapers.txt": "eve\n", "partners.txt": "ann\n"})
	got := user{}.run(t, "test", suite, "--lists", lists)
	assert.Equal(t, command.ExitDone, got.code, got.out)
	got = user{}.run(t, "test", suite)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `access rule "no-scrapers" names list "scrapers"`)
}

func TestValidateAndExplainWarnOfMissingListsWhereTheyCanKnow(t *testing.T) {
	rules, lists := accessRules(t), tree(t, map[string]string{"other.txt": "eve\n"})
	got := user{}.run(t, "validate", rules)
	assert.Equal(t, answer{"1 document, 2 rules, no mistakes\n", "", command.ExitDone}, got)
	got = user{}.run(t, "validate", rules, "--lists", lists)
	assert.Equal(t, answer{"1 document, 2 rules, no mistakes\n", fmt.Sprintf(twoMissing, "at "+lists), command.ExitDone}, got)
	got = user{}.run(t, "validate", rules, "--lists", lists, "--output", "json")
	assert.Contains(t, got.out, `"access rule \"no-scrapers\" names list \"scrapers\", which is not at `+lists)
	got = user{}.run(t, "explain", "orders", "--rules", rules, "--lists", lists)
	assert.Equal(t, fmt.Sprintf(twoMissing, "at "+lists), got.err)
}

func TestPushWarnsOfListsThatAreNotInEtcd(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	rules := accessRules(t)
	got := u.run(t, "push", rules, "--yes")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Equal(t, fmt.Sprintf(twoMissing, "in etcd, below /penstock/shop.lists/: instances may have it from files or code"), got.err)
	for _, name := range []string{"scrapers", "partners"} {
		require.Equal(t, command.ExitDone, u.run(t, "lists", "push", name, listFile(t, "a\n"), "--yes").code)
	}
	assert.Empty(t, u.run(t, "push", rules, "--yes").err)
}

func TestListThatARuleNamesIsNotDeletedWithoutForce(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "scrapers", listFile(t, "10.0.0.0/8\n"), "--yes").code)
	require.Equal(t, command.ExitDone, u.run(t, "push", tree(t, map[string]string{
		"a.yaml": "access: [{name: no-scrapers, match: \"*\", list: scrapers}]",
	}), "--yes").code)
	got := u.run(t, "lists", "delete", "scrapers", "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `list scrapers is named by access rule "no-scrapers" in "a.yaml": take it out of the rules first`)

	_, err := server.Client().Put(context.Background(), "/penstock/shop/a.yaml", "access: [{nam: x, list: scrapers}]")
	require.NoError(t, err)
	got = u.run(t, "lists", "delete", "scrapers", "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `document "a.yaml", which has mistakes`)

	assert.Equal(t, "10.0.0.0/8\n", u.run(t, "lists", "pull", "scrapers").out)
	assert.Equal(t, command.ExitDone, u.run(t, "lists", "delete", "scrapers", "--yes", "--force").code)
}

func TestPushThatTakesOutMostEntriesNeedsAConfirmation(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, "a\nb\nc\n"), "--yes").code)
	for _, text := range []string{"# none\n", "a\n"} {
		got := u.run(t, "lists", "push", "l", listFile(t, text), "--yes")
		assert.Equal(t, command.ExitNo, got.code)
		assert.Contains(t, got.err, "of the 3 entries would go")
		assert.Contains(t, got.err, "say --confirm-removals")
	}
	assert.Equal(t, "a\nb\nc\n", u.run(t, "lists", "pull", "l").out)
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, "a\nb\n"), "--yes").code)
	assert.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, "# none\n"), "--yes", "--confirm-removals").code)
}

func TestPushOfTextsInPlaceOfAddressesNeedsAConfirmation(t *testing.T) {
	t.Parallel()
	_, u := startEtcd(t, etcdtest.Options{})
	addresses, texts := listFile(t, "# of Monday\n10.0.0.1\n10.0.0.2\n"), listFile(t, "\"10.0.0.1\"\nbob\ncarol\n")
	for _, push := range []struct{ from, to string }{{addresses, texts}, {texts, addresses}} {
		require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", push.from, "--yes").code)
		got := u.run(t, "lists", "push", "l", push.to, "--yes")
		assert.Equal(t, command.ExitNo, got.code)
		assert.Contains(t, got.err, "entries would go: a list of addresses and one of texts have none in common\n")
		assert.Contains(t, got.err, "say --confirm-removals")
		require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", push.to, "--yes", "--confirm-removals").code)
	}
	other := listFile(t, "10.0.0.8\n10.0.0.9\n")
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", other, "--yes").code, "other addresses")
}

func TestRollbackToTextsInPlaceOfAddressesNeedsAConfirmation(t *testing.T) {
	t.Parallel()
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, "bob\ncarol\ndora\n"), "--yes").code)
	addresses := listFile(t, "10.0.0.1\n10.0.0.2\n")
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", addresses, "--yes", "--confirm-removals").code)
	revision := regexp.MustCompile(`(?m)^l +3 .*? (\d+) +20\d\d-`).FindStringSubmatch(u.run(t, "lists", "history", "l").out)
	require.Len(t, revision, 2)

	got := u.run(t, "lists", "rollback", "l", revision[1], "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "all of the 2 entries would go: a list of addresses and one of texts have none in common\n")
	assert.Contains(t, got.err, "say --confirm-removals")
	assert.Equal(t, "10.0.0.1\n10.0.0.2\n", u.run(t, "lists", "pull", "l").out)
	require.Equal(t, command.ExitDone, u.run(t, "lists", "rollback", "l", revision[1], "--yes", "--confirm-removals").code)
	assert.Equal(t, "bob\ncarol\ndora\n", u.run(t, "lists", "pull", "l").out)
}

func TestFormerVersionsOfAListAreListedAndRestored(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	assert.Equal(t, answer{"list l has no former versions\n", "", command.ExitDone}, u.run(t, "lists", "history", "l"))
	for _, text := range []string{"a\n", "a\nb\n", "a\nb\nc\n"} {
		require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "l", listFile(t, text), "--yes", "--author", "alice").code)
	}
	rows := regexp.MustCompile(`(?m)^l +(\d+) .*? (\d+) +20\d\d-`)
	history := func() (entries, revisions []string) {
		for _, row := range rows.FindAllStringSubmatch(u.run(t, "lists", "history", "l").out, -1) {
			entries, revisions = append(entries, row[1]), append(revisions, row[2])
		}
		return entries, revisions
	}
	entries, revisions := history()
	require.Equal(t, []string{"2", "1"}, entries)

	got := u.run(t, "lists", "rollback", "l", revisions[1], "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "2 of the 3 entries would go")
	got = u.run(t, "lists", "rollback", "l", revisions[1], "--yes", "--confirm-removals")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, "a\n", u.run(t, "lists", "pull", "l").out)
	entries, _ = history()
	assert.Equal(t, []string{"3", "2"}, entries, "what was there is in the history, what is there is not")

	require.Equal(t, command.ExitDone, u.run(t, "lists", "delete", "l", "--yes").code)
	entries, revisions = history()
	assert.Equal(t, []string{"1", "3", "2"}, entries)
	got = u.run(t, "lists", "rollback", "l", revisions[1], "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, "a\nb\nc\n", u.run(t, "lists", "pull", "l").out, "also of a list that was deleted")
	got = u.run(t, "lists", "rollback", "l", "1", "--yes")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "has no revision 1")
}

func TestEntriesAreAddedToAListAndRemoved(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	got := u.run(t, "lists", "add", "scrapers", "192.0.2.1")
	assert.Equal(t, command.ExitNo, got.code, "there is no such list")
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "scrapers", listFile(t, "# seen\n10.0.0.0/8  # all\n"), "--yes").code)

	got = u.run(t, "lists", "add", "scrapers", "192.0.2.1", "10.0.0.0/8", "-m", "ticket 812", "--author", "alice")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Regexp(t, `^list scrapers: 1 added, 1 there already: it has 2 entries and is at revision \d+ now\n$`, got.out)
	assert.Equal(t, "# seen\n10.0.0.0/8  # all\n192.0.2.1\n", u.run(t, "lists", "pull", "scrapers").out)
	assert.Contains(t, u.run(t, "lists", "list").out, "alice   ticket 812")
	assert.Contains(t, u.run(t, "lists", "history", "scrapers").out, "scrapers  1        ")

	for range 2 { // nothing is written
		again := u.run(t, "lists", "add", "scrapers", "192.0.2.1/32", "-o", "json")
		assert.Equal(t, command.ExitDone, again.code)
		assert.Regexp(t, `(?s)"present": \[\s*"192.0.2.1/32"\s*\],\s*"entries": 2`, again.out)
		assert.NotContains(t, again.out, "added")
	}
	got = u.run(t, "lists", "add", "scrapers", "some text")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "a list has addresses or texts")

	got = u.run(t, "lists", "add", "scrapers", "192.0.2.7", "--until", "2100-01-01T00:00:00Z")
	require.Equal(t, command.ExitDone, got.code, got.err)
	before := time.Now()
	got = u.run(t, "lists", "add", "scrapers", "192.0.2.8", "192.0.2.1", "--for", "24h")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "1 added, 1 there already")
	text := u.run(t, "lists", "pull", "scrapers").out
	assert.Contains(t, text, "192.0.2.7 until 2100-01-01T00:00:00Z\n")
	_, end, _ := strings.Cut(text, "192.0.2.8 until ")
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(end))
	require.NoError(t, err)
	assert.False(t, at.Before(before.Add(24*time.Hour)))
	for _, args := range [][]string{
		{"--until", "2020-01-01T00:00:00Z"}, {"--until", "soon"}, {"--for", "-1h"}, {"--for", "1h", "--until", "2100-01-01T00:00:00Z"},
	} {
		got = u.run(t, append([]string{"lists", "add", "scrapers", "192.0.2.9"}, args...)...)
		assert.Contains(t, []int{command.ExitNo, command.ExitUsage}, got.code, args)
	}
	require.Equal(t, command.ExitDone, u.run(t, "lists", "remove", "scrapers", "192.0.2.7", "192.0.2.8").code)

	got = u.run(t, "lists", "remove", "scrapers", "192.0.2.1", "192.0.2.9")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "list scrapers: 1 removed, 1 not there: it has 1 entry")
	assert.Equal(t, "# seen\n10.0.0.0/8  # all\n", u.run(t, "lists", "pull", "scrapers").out)
	got = u.run(t, "lists", "remove", "scrapers", "192.0.2.1")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Contains(t, got.out, "1 not there: nothing to write")

	got = u.run(t, "lists", "remove", "scrapers", "10.0.0.0/8")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "say --confirm-removals")
	require.Equal(t, command.ExitDone, u.run(t, "lists", "remove", "scrapers", "10.0.0.0/8", "--confirm-removals").code)
	assert.Equal(t, "# seen\n", u.run(t, "lists", "pull", "scrapers").out)
}

// Of entries that several add at the same time, none is lost without an exit code that says so.
func TestEntriesThatAreAddedAtTheSameTimeAreAllThere(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "scrapers", listFile(t, "10.0.0.0/8\n"), "--yes").code)
	codes := make([]int, 6)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() {
			codes[i] = u.run(t, "lists", "add", "scrapers", fmt.Sprintf("192.0.2.%d", i)).code
		})
	}
	all.Wait()
	text := u.run(t, "lists", "pull", "scrapers").out
	for i, code := range codes {
		assert.Contains(t, []int{command.ExitDone, command.ExitConflict}, code)
		assert.Equal(t, code == command.ExitDone, strings.Contains(text, fmt.Sprintf("192.0.2.%d\n", i)))
	}
}
