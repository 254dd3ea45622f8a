package signal

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
)

// layout is a variant of /proc and /sys/fs/cgroup. In a second, the machine is busy for half
// of the time, its processors 2 and 3 for three quarters; a quarter of its memory is in use.
type layout struct {
	before, after          files // a second passes between them
	cpu, throttled, memory float64
}

// The folders of most layouts.
const (
	v2Top  = "sys/fs/cgroup"
	v1CPU  = "sys/fs/cgroup/cpu,cpuacct"
	v1Mem  = "sys/fs/cgroup/memory"
	docker = "/docker/0a1b"
)

// onV1 are the files of a process in a cgroup of v1, of file systems that show the
// cgroups below root.
func onV1(group, root string) files {
	return membership(fmt.Sprintf("4:memory:%[1]s\n3:cpu,cpuacct:%[1]s\n1:name=systemd:%[1]s\n0::%[1]s\n", group), fmt.Sprintf(mountsOfV1, root))
}

func layoutsOfV2() map[string]layout {
	pod := v2Top + "/kubepods.slice/pod1.slice"
	nested := membership("0::/kubepods.slice/pod1.slice/app.scope\n", mountOfV2)
	return map[string]layout{
		"v2, the root": {
			before: join(membership("0::/\n", mountOfV2), files{v2Top + "/cpu.stat": "usage_usec 5\n"}),
			cpu:    0.5, memory: 0.25,
		},
		"v2, a container with a namespace": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "200000", 7, 1), memory2(v2Top, oneGiB, 512, 128)),
			after:  cpu2(v2Top, "200000", 8.5, 1.25),
			cpu:    0.75, throttled: 0.25, memory: 0.375,
		},
		"v2, no limits": {
			before: join(membership("0::/shop\n", mountOfV2), cpu2(v2Top+"/shop", "max", 7, 1), memory2(v2Top+"/shop", "max", 512, 128)),
			cpu:    0.5, memory: 0.25,
		},
		"v2, limits of parents": {
			before: join(nested, cpu2(pod+"/app.scope", "max", 7, 1), cpu2(pod, "100000", 7, 1), cpu2(v2Top+"/kubepods.slice", "300000", 100, 0),
				memory2(pod+"/app.scope", oneGiB, 512, 0), memory2(pod, twoGiB, 2048, 256)),
			after: join(cpu2(pod, "100000", 7.6, 1.1), cpu2(v2Top+"/kubepods.slice", "300000", 102.4, 0.05)),
			cpu:   0.8, throttled: 0.1, memory: 0.875,
		},
		"v2, half a processor": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "50000", 1, 0)),
			after:  cpu2(v2Top, "50000", 1.4, 0.5),
			cpu:    0.8, throttled: 0.5, memory: 0.25,
		},
		"v2, a burst beyond the quota, throttled on four processors": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "50000", 1, 0)),
			after:  cpu2(v2Top, "50000", 1.7, 3),
			cpu:    1, throttled: 1, memory: 0.25,
		},
		"v2, a quota of all processors": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "400000", 7, 1)),
			after:  cpu2(v2Top, "400000", 8, 1),
			cpu:    0.5, memory: 0.25,
		},
		"v2, controllers not enabled": {
			before: join(membership("0::/shop\n", mountOfV2), files{v2Top + "/shop/cpu.stat": "usage_usec 5\n"}),
			cpu:    0.5, memory: 0.25,
		},
		"v2, memory.high": {
			before: join(membership("0::/\n", mountOfV2), memory2(v2Top, "max", 900, 0), files{v2Top + "/memory.high": oneGiB}),
			cpu:    0.5, memory: 900.0 / 1024,
		},
		"v2, huge numbers": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "99999999999999999999999", 1e13, 0),
				memory2(v2Top, "99999999999999999999999999", 1, 2)),
			after: cpu2(v2Top, "99999999999999999999999", 1e14, 0),
			cpu:   0.5, memory: 0.25,
		},
		"v2, more cache than use": {
			before: join(membership("0::/\n", mountOfV2), memory2(v2Top, oneGiB, 1, 2)),
			cpu:    0.5, memory: 0,
		},
		"v2, no memory at all": {
			before: join(membership("0::/\n", mountOfV2), memory2(v2Top, "0", 1, 0)),
			cpu:    0.5, memory: 1,
		},
		"v2, also mounted with the cgroups above": {
			before: join(membership("0::/docker/0a1b\n", "31 23 0:28 /docker/0a1b /sys/fs/cgroup ro - cgroup2 cgroup rw\n"+
				"31 23 0:28 / /host/my\\040cgroups ro - cgroup2 cgroup rw\n"),
				cpu2("host/my cgroups/docker/0a1b", "max", 7, 1), cpu2("host/my cgroups/docker", "100000", 7, 1)),
			after: cpu2("host/my cgroups/docker", "100000", 7.6, 1),
			cpu:   0.6, memory: 0.25,
		},
		"v2, the cgroup was removed": {
			before: join(membership("0::/shop (deleted)\n", mountOfV2), cpu2(v2Top+"/shop", "100000", 7, 1)),
			after:  cpu2(v2Top+"/shop", "100000", 7.9, 1),
			cpu:    0.9, memory: 0.25,
		},
	}
}

func layoutsOfV1() map[string]layout {
	separate := "4:memory:/shop\n2:cpuacct:/shop\n1:cpu:/shop\n"
	mounts := "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
	return map[string]layout{
		"v1, the root": {
			before: join(onV1("/", "/"), cpu1(v1CPU, v1CPU, "-1", 7, 1), memory1(v1Mem, unlimited1, 900, 100)),
			cpu:    0.5, memory: 0.25,
		},
		"v1, cpu and cpuacct joint": {
			before: join(onV1("/shop", "/"), cpu1(v1CPU+"/shop", v1CPU+"/shop", "200000", 7, 1), cpu1(v1CPU, v1CPU, "-1", 9, 0),
				memory1(v1Mem+"/shop", oneGiB, 900, 132), memory1(v1Mem, unlimited1, 9000, 0)),
			after: cpu1(v1CPU+"/shop", v1CPU+"/shop", "200000", 8.5, 1.25),
			cpu:   0.75, throttled: 0.25, memory: 0.75,
		},
		"v1, cpu and cpuacct apart": {
			before: join(membership(separate, mounts), cpu1("sys/fs/cgroup/cpu/shop", "sys/fs/cgroup/cpuacct/shop", "150000", 7, 1),
				files{v1Mem + "/shop/tasks": ""}),
			after: join(cpu1("sys/fs/cgroup/cpu/shop", "sys/fs/cgroup/cpuacct/shop", "150000", 7.9, 1),
				membership(separate, mounts+"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")),
			cpu: 0.6, memory: 0.25,
		},
		"v1, a container without a namespace": {
			before: join(onV1(docker, docker), cpu1(v1CPU, v1CPU, "50000", 7, 1), memory1(v1Mem, oneGiB, 512, 0)),
			after:  cpu1(v1CPU, v1CPU, "50000", 7.4, 1.5),
			cpu:    0.8, throttled: 0.5, memory: 0.5,
		},
		"v1, a namespace on an old kernel": {
			before: join(onV1("/", docker), cpu1(v1CPU, v1CPU, "50000", 7, 1), memory1(v1Mem, oneGiB, 512, 0)),
			after:  cpu1(v1CPU, v1CPU, "50000", 7.4, 1),
			cpu:    0.8, memory: 0.5,
		},
		"v1, limits of a parent": {
			before: join(onV1("/pods/app", "/"), cpu1(v1CPU+"/pods/app", v1CPU+"/pods/app", "-1", 1, 0), cpu1(v1CPU+"/pods", v1CPU+"/pods", "100000", 7, 1),
				memory1(v1Mem+"/pods/app", unlimited1, 100, 0), memory1(v1Mem+"/pods", oneGiB, 512, 0)),
			after: cpu1(v1CPU+"/pods", v1CPU+"/pods", "100000", 7.9, 1),
			cpu:   0.9, memory: 0.5,
		},
		"hybrid: v2 without controllers": {
			before: join(membership("4:memory:/shop\n3:cpu,cpuacct:/shop\n1:name=systemd:/\n0::/\n",
				fmt.Sprintf(mountsOfV1, "/")+"38 31 0:41 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"),
				cpu1(v1CPU+"/shop", v1CPU+"/shop", "100000", 7, 1), memory1(v1Mem+"/shop", oneGiB, 512, 0)),
			after: cpu1(v1CPU+"/shop", v1CPU+"/shop", "100000", 7.9, 1),
			cpu:   0.9, memory: 0.5,
		},
		"hybrid: memory in v1, cpu in v2": {
			before: join(membership("4:memory:/shop\n0::/shop\n", mountOfV2+"35 31 0:32 / /mem rw - cgroup cgroup rw,memory\n"),
				cpu2(v2Top+"/shop", "100000", 7, 1), memory1("mem/shop", oneGiB, 512, 0)),
			after: cpu2(v2Top+"/shop", "100000", 7.9, 1),
			cpu:   0.9, memory: 0.5,
		},
	}
}

func layoutsWithoutLimits() map[string]layout {
	onlyLast := files{"proc/self/status": "Name:\tshop\nCpus_allowed_list:\t2-3,5-7\n"}
	return map[string]layout{
		"no cgroups in the kernel": {cpu: 0.5, memory: 0.25},
		"no cgroups of this process": {
			before: membership("", mountOfV2),
			cpu:    0.5, memory: 0.25,
		},
		"the root, and nothing mounted": {
			before: membership("3:cpu,cpuacct:/\n0::/\n", ""),
			cpu:    0.5, memory: 0.25,
		},
		"a CPU set": {before: onlyLast, cpu: 0.75, memory: 0.25},
		"a quota of all processors of a CPU set": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "200000", 7, 1), onlyLast),
			after:  cpu2(v2Top, "200000", 8, 1),
			cpu:    0.75, memory: 0.25,
		},
		"a quota of less than a CPU set": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "100000", 7, 1), onlyLast),
			after:  cpu2(v2Top, "100000", 7.9, 1),
			cpu:    0.9, memory: 0.25,
		},
		"no affinity in the status": {before: files{"proc/self/status": "Name:\tshop\n"}, cpu: 0.5, memory: 0.25},
		"lxcfs: processors numbered anew": {
			before: files{"proc/self/status": "Cpus_allowed_list:\t60-63\n"},
			cpu:    0.5, memory: 0.25,
		},
		"lxcfs: more processors than are allowed, numbered anew": {
			before: files{"proc/self/status": "Cpus_allowed_list:\t60-61\n"},
			cpu:    0.5, memory: 0.25,
		},
		"processors that are not counted, but a quota": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "100000", 7, 1)),
			after:  join(cpu2(v2Top, "100000", 7.9, 1), first()),
			cpu:    0.9, memory: 0.25,
		},
		"no /proc/stat, but a quota": {
			before: join(membership("0::/\n", mountOfV2), cpu2(v2Top, "100000", 7, 1), files{"proc/stat": ""}),
			after:  join(cpu2(v2Top, "100000", 7.9, 1), files{"proc/stat": ""}),
			cpu:    0.9, memory: 0.25,
		},
	}
}

func TestEveryLayoutOfCgroupsIsUnderstood(t *testing.T) {
	for _, layouts := range []map[string]layout{layoutsOfV2(), layoutsOfV1(), layoutsWithoutLimits()} {
		for name, l := range layouts {
			t.Run(name, func(t *testing.T) {
				m := newMachine(t, first(), l.before)
				_, _ = m.source.Read(t.Context(), rule.SignalCPU)
				m.clock.Advance(time.Second)
				m.write(join(second(), l.after))
				require.InDelta(t, l.cpu, m.read(rule.SignalCPU), 1e-9)
				require.InDelta(t, l.throttled, m.read(rule.SignalThrottled), 1e-9)
				require.InDelta(t, l.memory, m.read(rule.SignalMemory), 1e-9)
			})
		}
	}
}
