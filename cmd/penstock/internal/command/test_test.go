package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

// suites has test files that the tests run.
func suites(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"rules/orders.yaml": "flow:\n- {resource: orders, limit: 1000, warmUp: {period: 10s}}\n",
		"rules/carts.yaml":  "flow:\n- {name: queue, resource: carts, limit: 5, algorithm: throttle, maxWait: 300ms}\n",
		"tests/good_test.yaml": `rules: ../rules
cases:
  - name: a cold start warms up
    load: orders 2000/s for 20s
    expect:
      passed: 333 348 366 387 412 442 479 528 594 692 856 1000… ±2
      blockedBy: orders
  - name: a burst waits its turn
    load: carts at 0.5 x3
    expect: {waits: 0 200ms, total: {blocked: 1}}
`,
		"tests/deep/inline_test.yml": `rules: {flow: [{resource: a, limit: 2}]}
cases:
  - {name: two pass, load: a at 0 x3, expect: {passed: 2}}
`,
		"failing/some_test.yaml": `rules: [../rules/orders.yaml, ../rules/carts.yaml]
cases:
  - name: a burst waits its turn
    load: carts at 0.5 x3
    expect: {waits: 0 200ms}
  - name: nothing is refused
    load: [carts 10/s for 2s, orders 300/s for 2s]
    expect:
      - {resource: carts, blocked: 0…, blockedBy: qeue}
      - {resource: orders, passed: 300 301}
  - name: endless
    load: carts 1/s
    expect: {passed: 1}
`,
		"users/some_test.yaml": `rules: ../rules
cases:
  - name: each user has a share
    load: {streams: [{resource: carts, rate: 10, until: 1s, attrs: {user: [u1, u2], tenant: [7]}}]}
    expect:
      - {value: u1, passed: 3, total: {blocked: 0}}
      - {resource: carts, each: [tenant, user], total: {passed: 3..}}
`,
		"mistaken/a_test.yaml": "rules: {flow: [{resource: a, limt: 2}]}\ncases: [{name: a, load: a 1/x, expect: {passed: 1,000}}]\n",
		"mistaken/b_test.yaml": "rules: nowhere.yaml\ncases: [{name: a, load: a at 0, expect: {passed: 1}}]\n",
		"mistaken/c_test.yaml": "rules: [broken.yaml, ../rules/carts.yaml]\ncases: [{name: a, load: a at 0, expect: {passed: 1}}]\n",
		"mistaken/broken.yaml": "flow:\n- {name: queue, resource: a}\n",
		"empty/nothing.yaml":   "",
	})
}

var elapsed = regexp.MustCompile(`\d+\.\d\d+s`)

// outcome is what a test run prints, but for the time it takes.
func outcome(text, directory string) string {
	return elapsed.ReplaceAllString(strings.ReplaceAll(text, directory, "DIR"), "0.00s")
}

func TestTestsOfADirectoryPass(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	got := user{}.run(t, "test", filepath.Join(directory, "tests"))
	assert.Zero(t, got.code, got.err)
	assert.Equal(t, "ok  \tDIR/tests/deep/inline_test.yml\t0.00s\nok  \tDIR/tests/good_test.yaml\t0.00s\n", outcome(got.out, directory))
	got = user{}.run(t, "test", "-v", filepath.Join(directory, "tests/...")) // as go test has it
	assert.Zero(t, got.code, got.err)
	assert.Equal(t, `--- PASS: two pass (0.00s)
ok  	DIR/tests/deep/inline_test.yml	0.00s
--- PASS: a cold start warms up (0.00s)
--- PASS: a burst waits its turn (0.00s)
ok  	DIR/tests/good_test.yaml	0.00s
`, outcome(got.out, directory))
}

func TestTestsOfTheWorkingDirectory(t *testing.T) {
	t.Chdir(filepath.Join(suites(t), "tests"))
	assert.Equal(t, "ok  \tdeep/inline_test.yml\t0.00s\nok  \tgood_test.yaml\t0.00s\n", outcome(user{}.run(t, "test").out, "-"))
}

func TestFailedTestsShowTheDifferences(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	got := user{}.run(t, "test", filepath.Join(directory, "failing"))
	assert.Equal(t, command.ExitNo, got.code)
	golden(t, "test_fail.txt", outcome(got.out, directory), directory)
}

func TestFailedTestsOfSomeCallsSayWhose(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	got := user{}.run(t, "test", filepath.Join(directory, "users"))
	assert.Equal(t, command.ExitNo, got.code)
	golden(t, "test_users.txt", outcome(got.out, directory), directory)
}

func TestMistakesInTestFilesDoNotKeepOthersFromRunning(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	got := user{}.run(t, "test", filepath.Join(directory, "mistaken"), filepath.Join(directory, "tests/good_test.yaml"))
	assert.Equal(t, command.ExitNo, got.code)
	golden(t, "test_mistakes.txt", outcome(got.out, directory), directory)
}

func TestOnlyWantedCasesRun(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	got := user{}.run(t, "test", "-v", "--run", "^a cold", filepath.Join(directory, "tests"))
	assert.Zero(t, got.code, got.err)
	assert.Equal(t, "ok  \tDIR/tests/deep/inline_test.yml\t0.00s [no cases to run]\n"+
		"--- PASS: a cold start warms up (0.00s)\nok  \tDIR/tests/good_test.yaml\t0.00s\n", outcome(got.out, directory))
}

func TestTestsForMachines(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	got := user{}.run(t, "test", "--output", "json", filepath.Join(directory, "failing"), filepath.Join(directory, "mistaken"))
	assert.Equal(t, command.ExitNo, got.code)
	var report struct {
		Passed, Failed int
		Files          []struct {
			Path, Error string
			Mistakes    []struct{ Line, Column int }
			Cases       []struct {
				Name, Error string
				Line        int
				Passed      bool
				Failures    []struct {
					Line, Column             int
					Resource, Field, Message string
					Got                      string
					Differences              []struct{ Where, Got, Want string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	assert.Equal(t, 1, report.Passed)
	assert.Equal(t, 2+3, report.Failed, "two cases and three files")
	require.Len(t, report.Files, 4)
	require.Len(t, report.Files[0].Cases, 3)
	failing := report.Files[0].Cases[1]
	assert.Equal(t, 6, failing.Line)
	assert.False(t, failing.Passed)
	require.Len(t, failing.Failures, 3)
	assert.Equal(t, "orders", failing.Failures[2].Resource)
	assert.Equal(t, "300x2", failing.Failures[2].Got)
	assert.Equal(t, "second 1", failing.Failures[2].Differences[0].Where)
	assert.Equal(t, "301", failing.Failures[2].Differences[0].Want)
	assert.Contains(t, report.Files[0].Cases[2].Error, "until is missing")
	assert.Len(t, report.Files[1].Mistakes, 3)
	assert.Contains(t, report.Files[2].Error, "nowhere.yaml")
}

func TestThereMustBeSomethingToTest(t *testing.T) {
	t.Parallel()
	directory := suites(t)
	for want, arguments := range map[string][]string{
		"there is no test below DIR/empty: the names of test files end in _test.yaml": {filepath.Join(directory, "empty")},
		`no case has a name that matches --run "nobody"`:                              {"--run", "nobody", filepath.Join(directory, "tests")},
		"--run: error parsing regexp":                                                 {"--run", "(", filepath.Join(directory, "tests")},
	} {
		got := user{}.run(t, append([]string{"test"}, arguments...)...)
		assert.Equal(t, command.ExitUsage, got.code)
		assert.Contains(t, strings.ReplaceAll(got.err, directory, "DIR"), want)
	}
	got := user{}.run(t, "test", filepath.Join(directory, "nowhere"))
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "no such file")
}

func TestTheExamplesOfTheDocumentationWork(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../../docs/testing-rules.md")
	require.NoError(t, err)
	files := map[string]string{"rules/credit.yaml": "hotParam: [{name: credit, resource: api, param: tenant, limit: 0, algorithm: prepaid}]"}
	for _, block := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(string(document), -1) {
		files[block[1]] = block[2]
	}
	require.Len(t, files, 8, "every block of YAML names its file")
	directory := tree(t, files)
	got := user{}.run(t, "test", directory)
	assert.Zero(t, got.code, got.out+got.err)
	for _, load := range []string{"load.yaml", "service.yaml", "fleet.yaml"} {
		got = user{}.run(t, "simulate", "--rules", filepath.Join(directory, "rules"),
			"--load", filepath.Join(directory, load), "--instances", "3")
		assert.Zero(t, got.code, got.err)
	}
}

func TestTheLinesOfTheDocumentationAreStreams(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../../docs/testing-rules.md")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(document), "```text\norders ")
	block, _, _ := strings.Cut(after, "```")
	explanation := regexp.MustCompile("   +.*")
	lines := strings.Split(strings.TrimSpace("orders "+block), "\n")
	require.Len(t, lines, 7)
	for _, line := range lines {
		load := user{types: "streams:\n- " + explanation.ReplaceAllString(line, "")}
		got := load.run(t, "simulate", "--rules", tree(t, map[string]string{"none.yaml": "flow: []"}), "--load", "-")
		assert.Zero(t, got.code, "%s: %s", line, got.err)
	}
}

// Standard input is nothing that a file could name.
func TestADashIsAFileInTests(t *testing.T) {
	t.Chdir(tree(t, map[string]string{
		"a_test.yaml": "rules: '-'\ncases: [{name: a, load: a at 0, expect: {passed: 1}}]\n",
	}))
	got := user{types: "flow: []"}.run(t, "test", "a_test.yaml")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "the rules cannot be read: stat -: no such file")
}
