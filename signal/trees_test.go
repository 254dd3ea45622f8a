package signal

import (
	"fmt"
)

// The lines of /proc/self/mountinfo that matter.
const (
	mountOfProc = "23 29 0:21 / /proc rw,nosuid - proc proc rw\n"
	mountOfV2   = "31 23 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
	mountsOfV1  = "31 23 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755\n" +
		"32 31 0:29 %[1]s /sys/fs/cgroup/systemd rw,nosuid shared:10 - cgroup cgroup rw,xattr,name=systemd\n" +
		"34 31 0:31 %[1]s /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:12 - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 %[1]s /sys/fs/cgroup/memory rw,nosuid shared:13 - cgroup cgroup rw,memory\n"
)

// membership are the files that say which cgroup the process is in.
func membership(groups, mounts string) files {
	return files{"proc/self/cgroup": groups, "proc/self/mountinfo": mountOfProc + mounts}
}

// cpu2 are the files of a cgroup of v2 with a quota, in microseconds of a period of 100 ms,
// and what it has counted, in seconds.
func cpu2(folder, quota string, usage, throttled float64) files {
	return files{
		folder + "/cpu.max":  quota + " 100000\n",
		folder + "/cpu.stat": stat2(usage, throttled),
	}
}

func stat2(usage, throttled float64) string {
	return fmt.Sprintf("usage_usec %.0f\nuser_usec 1\nsystem_usec 2\ncore_sched.force_idle_usec 0\nnr_periods 9\nnr_throttled 3\nthrottled_usec %.0f\nnr_bursts 0\nburst_usec 0\n",
		usage*1e6, throttled*1e6)
}

// memory2 are the files of a cgroup of v2 with memory, in MiB.
func memory2(folder, limit string, current, inactive int64) files {
	return files{
		folder + "/memory.max":     limit + "\n",
		folder + "/memory.high":    "max\n",
		folder + "/memory.current": fmt.Sprintf("%d\n", current<<20),
		folder + "/memory.stat":    fmt.Sprintf("anon 1\nfile 4096\ninactive_anon 5\ninactive_file %d\nactive_file 7\n", inactive<<20),
	}
}

// cpu1 are the files of a cgroup of v1, in the folders of the controllers cpu and cpuacct.
func cpu1(cpu, acct, quota string, usage, throttled float64) files {
	return files{
		cpu + "/cpu.cfs_quota_us":  quota + "\n",
		cpu + "/cpu.cfs_period_us": "100000\n",
		cpu + "/cpu.stat":          fmt.Sprintf("nr_periods 9\nnr_throttled 3\nthrottled_time %.0f\n", throttled*1e9),
		acct + "/cpuacct.usage":    fmt.Sprintf("%.0f\n", usage*1e9),
	}
}

// memory1 are the files of a cgroup of v1 with memory, in MiB.
func memory1(folder, limit string, usage, inactive int64) files {
	return files{
		folder + "/memory.limit_in_bytes": limit + "\n",
		folder + "/memory.usage_in_bytes": fmt.Sprintf("%d\n", usage<<20),
		folder + "/memory.stat":           fmt.Sprintf("cache 10407936\ninactive_file 1\nhierarchical_memory_limit 1\ntotal_inactive_file %d\n", inactive<<20),
	}
}

const (
	unlimited1 = "9223372036854771712" // how v1 writes that there is no limit
	oneGiB     = "1073741824"
	twoGiB     = "2147483648"
)
