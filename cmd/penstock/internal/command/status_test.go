package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

func TestStatusWithoutInstances(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	got := u.run(t, "status")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Equal(t, "/penstock/shop/ in etcd: there are no documents\nno live instance reports: services do when etcd.Options.Instance names them\n", got.out)
	for _, args := range [][]string{{"status", "--wait"}, {"status", "--wait=99999999"}, {"push", one(t, 1), "--yes", "--wait"}} {
		got = u.run(t, args...)
		assert.Equal(t, command.ExitNobody, got.code, args)
		assert.Contains(t, got.err, "penstock: no live instance reports", args)
		got = u.run(t, append(args, "--min-instances=0")...)
		assert.Equal(t, command.ExitDone, got.code, args)
	}
}

func TestWaitForAMinimumOfInstances(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	startInstance(t, server, "a")
	var seen notes
	done := make(chan int, 1)
	directory := one(t, 1)
	go func() {
		_, code := u.runBeside(t, &seen, "push", directory, "--yes", "--wait", "--min-instances=2", "--timeout=10m")
		done <- code
	}()
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`waiting for 1 instance more to report revision \d+; at it: a\n`).MatchString(seen.String())
	}, eventTimeout, 10*time.Millisecond)
	startInstance(t, server, "b")
	select {
	case code := <-done:
		assert.Equal(t, command.ExitDone, code, seen.String())
	case <-time.After(eventTimeout):
		require.Fail(t, "still waiting though both are there", seen.String())
	}
}

func TestWaitForAMinimumOfInstancesNamesTheMissing(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	report := func(name string, revision int) {
		_, err := server.Client().Put(t.Context(), "/penstock/shop.instances/"+name, fmt.Sprintf(`{"instance": %q, "revision": %d, "documents": 1}`, name, revision))
		require.NoError(t, err)
	}
	got := u.run(t, "status", "--wait", "--min-instances=2", "--timeout=1s")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "penstock: only 0 of at least 2 instances came to revision 2 in 1s; at it: none; never reported: 2\n")

	report("a", 2)
	report("old", 1)
	got = u.run(t, "status", "--wait", "--min-instances=4", "--timeout=1s")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "penstock: only 1 of at least 4 instances came to revision 2 in 1s; at it: a; behind: old (at 1); never reported: 2\n")
	assert.Contains(t, got.out, "\nold ", "how it stands is shown all the same")
}

func TestWaitTellsOfAnInstanceThatGoesSilentBehind(t *testing.T) {
	for name, flags := range map[string][]string{"": nil, "strict": {"--strict"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, u := startEtcd(t, etcdtest.Options{})
			startInstance(t, server, "a")
			const hangs = "/penstock/shop.instances/hangs"
			_, err := server.Client().Put(t.Context(), hangs, `{"instance": "hangs", "revision": 1}`)
			require.NoError(t, err)
			var seen notes
			done := make(chan int, 1)
			directory := one(t, 1)
			go func() {
				_, code := u.runBeside(t, &seen, append([]string{"push", directory, "--yes", "--wait", "--timeout=10m"}, flags...)...)
				done <- code
			}()
			require.Eventually(t, func() bool {
				return regexp.MustCompile(`waiting for .*hangs \(at 1\)`).MatchString(seen.String())
			}, eventTimeout, 10*time.Millisecond)
			_, err = server.Client().Delete(t.Context(), hangs)
			require.NoError(t, err)
			select {
			case code := <-done:
				want := command.ExitDone
				if flags != nil {
					want = command.ExitNo
				}
				assert.Equal(t, want, code, seen.String())
				assert.Contains(t, seen.String(), "hangs reported no longer before coming to revision")
			case <-time.After(eventTimeout):
				require.Fail(t, "still waiting", seen.String())
			}
		})
	}
}

// startEtcdThatGoesAway starts a server that is away, as if it restarted, each second
// time that somebody reads which documents there are.
func startEtcdThatGoesAway(t *testing.T) (*etcdtest.Server, user) {
	var reads atomic.Int64
	return startEtcd(t, etcdtest.Options{Configure: func(c *embed.Config) {
		c.GRPCAdditionalServerOptions = append(c.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				txn, ok := request.(*pb.TxnRequest)
				isDeployment := ok && len(txn.Success) > 0 && txn.Success[0].GetRequestRange().GetKeysOnly()
				if isDeployment && reads.Add(1)%2 == 0 {
					return nil, status.Error(codes.Unavailable, "the server stops")
				}
				return next(ctx, request)
			}))
	}})
}

func TestWaitGoesOnWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	server, u := startEtcdThatGoesAway(t)
	startBusy(t, server, "a", "x")
	directory := tree(t, map[string]string{"a.yaml": "hotParam: [{resource: x, param: user, limit: 1000}]"})
	for range 2 { // with an odd number of reads, the next begins with the other kind
		for _, args := range [][]string{
			{"status", "--wait"},
			{"push", directory, "--yes", "--wait", "--strict", "--confirm-removals"},
			{"status", "--wait", "--min-instances=1", "--strict"},
		} {
			got := u.run(t, args...)
			assert.Equal(t, command.ExitDone, got.code, "%v: %s", args, got.err)
		}
	}
}

func TestStatusNamesUnreadableReports(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	startInstance(t, server, "a")
	_, err := server.Client().Put(t.Context(), "/penstock/shop.instances/b\n", "garbage")
	require.NoError(t, err)
	got := u.run(t, "status")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Contains(t, got.out, "\na ")
	assert.Contains(t, got.err, `warning: the value at "/penstock/shop.instances/b\n" is left out: store: no report of an instance: `)
	got = u.run(t, "status", "--output", "json")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Contains(t, got.out, `"key": "/penstock/shop.instances/b\n"`)
	got = u.run(t, "status", "--wait")
	assert.Equal(t, command.ExitDone, got.code, "nobody waits for it")
}

func TestPushWaitsForInstancesAndStatusShowsThem(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	stopA := startInstance(t, server, "a")
	startInstance(t, server, "b")
	got := u.run(t, "push", before(t), "--yes", "--wait", "--author", "alice", "--message", "more")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Regexp(t, `\n2 instances at revision \d+\n$`, got.out)

	got = u.run(t, "status")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Regexp(t, `^/penstock/shop/ in etcd: revision \d+, 4 documents, pushed [-0-9: ]+ by alice: more\n\n`+
		`INSTANCE +HOST +PID +VERSION +REVISION +DOCUMENTS +RULES +REPORTED +STATE\n`+
		`a .* 4 +6 .* up to date\nb .* 4 +6 .* up to date\n$`, got.out)

	// One that is stopped drops out, one that is started counts.
	stopA()
	startInstance(t, server, "c")
	got = u.run(t, "status", "--wait")
	assert.Equal(t, command.ExitDone, got.code)
	assert.NotContains(t, got.out, "\na ")
	assert.Contains(t, got.out, "\nb ")
	assert.Contains(t, got.out, "\nc ")
}

func TestStatusWaitsUntilInstancesReachTheRevisionOrStop(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	stop := startInstance(t, server, "a")
	type result struct {
		out  string
		code int
	}
	var seen notes
	done := make(chan result, 1)
	go func() {
		out, code := u.runBeside(t, &seen, "status", "--wait=1000", "--timeout=1m")
		done <- result{out, code}
	}()
	require.Eventually(t, func() bool {
		return strings.Contains(seen.String(), "waiting for 1 instance to come to revision 1000: a (at ")
	}, eventTimeout, 10*time.Millisecond)
	stop()
	select {
	case r := <-done:
		assert.Equal(t, command.ExitNobody, r.code)
		assert.Contains(t, r.out, "no live instance reports")
	case <-time.After(eventTimeout):
		require.Fail(t, "still waiting for an instance that has gone")
	}
}

func TestStatusShowsInstancesThatAreBehind(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	_, err := server.Client().Put(t.Context(), "/penstock/shop.instances/old", `{"instance": "old", "revision": 1}`)
	require.NoError(t, err)

	got := u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Regexp(t, `\nold .* behind\n$`, got.out)
	assert.Empty(t, got.err)

	got = u.run(t, "status", "--wait", "--timeout=1s")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "penstock: not every instance came to revision 2 in 1s: old (at 1)\n")
	assert.Regexp(t, `\nold .* behind\n$`, got.out)

	got = u.run(t, "push", one(t, 2), "--yes", "--wait", "--timeout=1s")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "is at revision 4 now")
	assert.Contains(t, got.err, "not every instance came to revision 4 in 1s: old (at 1)")
}

// The revision of an instance is no lower than any in etcd once a document is deleted: what
// counts is which documents it has read.
func TestStatusShowsInstancesThatHoldOtherDocuments(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	put := func(key, value string) etcd.DocumentRevision {
		t.Helper()
		written, err := server.Client().Put(t.Context(), "/penstock/shop/"+key, value)
		require.NoError(t, err)
		return etcd.DocumentRevision{Name: key, Revision: written.Header.Revision}
	}
	a, b, c := put("a", "flow: []"), put("b", "flow: []"), put("c", "flow: []")
	report := func(name string, held ...etcd.DocumentRevision) {
		t.Helper()
		value, err := json.Marshal(etcd.Report{Instance: name, Revision: c.Revision, Documents: len(held), Digest: etcd.DigestOf(held), Held: held})
		require.NoError(t, err)
		_, err = server.Client().Put(t.Context(), "/penstock/shop.instances/"+name, string(value))
		require.NoError(t, err)
	}
	report("i", a, b, c)
	require.Equal(t, command.ExitDone, u.run(t, "status").code)
	require.Equal(t, command.ExitDone, u.run(t, "status", "--wait").code)

	_, err := server.Client().Delete(t.Context(), "/penstock/shop/c")
	require.NoError(t, err)
	got := u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Regexp(t, `\ni .* behind\n\ni: not in etcd any more: c\n$`, got.out)
	assert.Contains(t, u.run(t, "status", "-o", "json").out, `"behind": true`)
	for _, args := range [][]string{{"status", "--wait"}, {"status", "--wait=1"}, {"status", "--wait", "--min-instances=1"}} {
		got = u.run(t, append(args, "--timeout=1s")...)
		assert.Equal(t, command.ExitNo, got.code, args)
		assert.Contains(t, got.err, fmt.Sprintf("i (at %d, with other documents)", c.Revision), args)
	}

	report("i", a, etcd.DocumentRevision{Name: "b", Revision: b.Revision - 1})
	got = u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, fmt.Sprintf("\ni: not read yet: b of revision %d\n", b.Revision))
	report("i", a, b)
	assert.Equal(t, command.ExitDone, u.run(t, "status", "--wait").code)
}

func TestStatusShowsInstancesOnACopy(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	_, err := server.Client().Put(t.Context(), "/penstock/shop.instances/old",
		`{"instance": "old", "revision": 1000, "copiedAt": "2030-01-01T00:00:00Z"}`)
	require.NoError(t, err)

	got := u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Regexp(t, `\nold .* on a copy of 2030-01-01 00:00:00\n$`, got.out)
	assert.Contains(t, u.run(t, "status", "-o", "json").out, `"copiedAt": "2030-01-01T00:00:00Z"`)
}

func TestDeletionsByOtherToolsAreNotAttributedToThePush(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	require.Regexp(t, `: revision \d+, 1 document, pushed .* by `, u.run(t, "status").out)
	_, err := server.Client().Delete(t.Context(), "/penstock/shop/", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Regexp(t, `: revision \d+, 0 documents, written by other tools than penstock\n`, u.run(t, "status").out)
}

func TestRejectionsOfSeveralInstancesAreCombined(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	for i := range 12 {
		report := fmt.Sprintf(`{"instance": "i%02d", "revision": 9, "rejected": [`+
			`{"document": "a", "revision": 8, "error": "one mistake\ntwo mistakes"}, {"document": "b", "revision": %d, "error": "no"}]}`, i, 8+i/11)
		_, err := server.Client().Put(t.Context(), fmt.Sprintf("/penstock/shop.instances/i%02d", i), report)
		require.NoError(t, err)
	}
	got := u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	const ten = "i00, i01, i02, i03, i04, i05, i06, i07, i08, i09"
	_, told, _ := strings.Cut(got.out, "i11 ")
	_, told, _ = strings.Cut(told, "\n")
	assert.Equal(t, "\n"+ten+" and 2 more rejected a of revision 8:\n  one mistake\n  two mistakes\n"+
		"\n"+ten+" and 1 more rejected b of revision 8:\n  no\n"+
		"\ni11 rejected b of revision 9:\n  no\n", told)
}

func TestStatusShowsRejectedDocuments(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	startInstance(t, server, "a")
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes", "--wait").code)
	written, err := server.Client().Put(t.Context(), "/penstock/shop/broken.yaml", "flow: [{resource: \x1b, limit: -1}]")
	require.NoError(t, err)

	got := u.run(t, "status", "--wait")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "2 documents, written by other tools than penstock")
	assert.Contains(t, got.out, "1 document rejected\n\na rejected broken.yaml of revision ")
	assert.NotContains(t, got.out, "\x1b")

	got = u.run(t, "status", "-o", "json")
	assert.Equal(t, command.ExitNo, got.code)
	var status struct {
		Revision  int64
		Documents int
		Instances []struct {
			Instance string
			Behind   bool
			Rejected []struct {
				Document, Error string
				Revision        int64
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &status))
	assert.Equal(t, written.Header.Revision, status.Revision)
	assert.Equal(t, 2, status.Documents)
	require.Len(t, status.Instances, 1)
	assert.False(t, status.Instances[0].Behind)
	require.Len(t, status.Instances[0].Rejected, 1)
	assert.Equal(t, "broken.yaml", status.Instances[0].Rejected[0].Document)

	// A push sets it right.
	got = u.run(t, "push", one(t, 1), "--yes", "--wait")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.err, "warning: etcd holds documents with mistakes")
	assert.Contains(t, got.out, "  - broken.yaml\n")
	assert.Equal(t, command.ExitDone, u.run(t, "status").code)
}
