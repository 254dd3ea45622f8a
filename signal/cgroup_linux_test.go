package signal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal"
)

// burnVariable makes the test binary a process that does nothing but use CPU time.
const burnVariable = "PENSTOCK_TEST_BURN"

func TestMain(m *testing.M) {
	if os.Getenv(burnVariable) != "" {
		burn()
		return
	}
	os.Exit(m.Run())
}

// burn uses all processors, once a line has come in, until the signals of this process
// have shown that it uses most of a quota and is throttled, or ten minutes have passed. It prints
// what they show.
func burn() {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	for range runtime.NumCPU() {
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	}
	source := signal.System()
	var cpu, throttled, memory float64
	var err1, err2, err3 error
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		cpu, err1 = source.Read(context.Background(), rule.SignalCPU)
		throttled, err2 = source.Read(context.Background(), rule.SignalThrottled)
		memory, err3 = source.Read(context.Background(), rule.SignalMemory)
		if cpu > 0.5 && throttled > 0.1 || err1 != nil || err2 != nil || err3 != nil {
			break
		}
	}
	fmt.Println("burnt", cpu, throttled, memory, err1, err2, err3)
}

// A process in a real cgroup with a fiftieth of a processor sees that it uses this up: it gets that on a busy machine, too.
func TestProcessInARealCgroupSeesItsQuota(t *testing.T) {
	procs := makeCgroup(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), burnVariable+"=1")
	in, err := child.StdinPipe()
	require.NoError(t, err)
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	require.NoError(t, child.Start())
	for _, name := range procs {
		if err := os.WriteFile(name, []byte(strconv.Itoa(child.Process.Pid)), 0); err != nil {
			_ = child.Process.Kill()
			_ = child.Wait()
			t.Skipf("NOT TESTED in a real cgroup: no process can be moved to one here: %v", err)
		}
	}
	_, err = in.Write([]byte("go\n"))
	require.NoError(t, err)
	require.NoError(t, child.Wait(), out.String())
	t.Log(out.String())

	var cpu, throttled, memory float64
	var rest string
	_, err = fmt.Sscanf(out.String(), "burnt %g %g %g %s", &cpu, &throttled, &memory, &rest)
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "<nil> <nil> <nil>")
	require.Greater(t, cpu, 0.5, "of the quota")
	require.Greater(t, throttled, 0.1)
}

// makeCgroup makes a cgroup with a quota of a fiftieth of a processor, in whichever hierarchies
// have CPU time, and returns the files to which its processes are written.
func makeCgroup(t *testing.T) (procs []string) {
	name := fmt.Sprintf("penstock-test-%d", os.Getpid())
	const top = "/sys/fs/cgroup"
	folders, quota := []string{filepath.Join(top, name)}, "cpu.max"
	text := "2000 100000"
	controllers, err := os.ReadFile(top + "/cgroup.subtree_control")
	if err != nil || !slices.Contains(strings.Fields(string(controllers)), "cpu") { // not v2, or without CPU time
		quota, text = "cpu.cfs_quota_us", "2000"
		folders = []string{filepath.Join(top, "cpu", name), filepath.Join(top, "cpuacct", name)}
	}
	made := map[string]bool{}
	for _, folder := range folders {
		if parent, err := filepath.EvalSymlinks(filepath.Dir(folder)); err == nil {
			folder = filepath.Join(parent, name) // cpu and cpuacct may be one
		}
		if made[folder] {
			continue
		}
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Skipf("NOT TESTED in a real cgroup: none can be made here: %v", err)
		}
		t.Cleanup(func() { assert.NoError(t, os.Remove(folder)) })
		made[folder] = true
		procs = append(procs, filepath.Join(folder, "cgroup.procs"))
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(procs[0]), quota), []byte(text), 0); err != nil {
		t.Skipf("NOT TESTED in a real cgroup: it cannot have a quota: %v", err)
	}
	return procs
}
