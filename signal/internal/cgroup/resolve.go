package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/signal/internal/procfs"
)

// hierarchy is one tree of cgroups, as far as the process sees it.
type hierarchy struct {
	v2     bool
	top    string   // folder of the file system
	groups []string // below it: the cgroup of the process, its parent, up to "", the top
}

// file returns the name of a file of a cgroup.
func (h hierarchy) file(group, name string) string { return path.Join(h.top, group, name) }

// resolve finds the cgroups of the process in the hierarchy of a controller. Without
// cgroups there are none.
func resolve(root fs.FS, controller string) (hierarchy, error) {
	text, err := procfs.Read(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return hierarchy{}, nil // a kernel without cgroups
	}
	if err != nil {
		return hierarchy{}, err
	}
	group, v2, ok := membership(text, controller)
	if !ok {
		return hierarchy{}, nil
	}
	if group == "/.." || strings.HasPrefix(group, "/../") {
		return hierarchy{}, fmt.Errorf("the cgroup %s of the process is outside of its cgroup namespace", group)
	}
	text, err = procfs.Read(root, "proc/self/mountinfo")
	if err != nil {
		return hierarchy{}, err
	}
	m, ok := findMount(text, controller, v2, group)
	switch {
	case !ok && group == "/":
		return hierarchy{v2: v2}, nil // not in a container: the root of a hierarchy has no limits
	case !ok:
		return hierarchy{}, fmt.Errorf("the process is in the cgroup %s, but no cgroup file system with the controller %s is mounted: mount it at /sys/fs/cgroup, read-only suffices", group, controller)
	case m.root == "/.." || strings.HasPrefix(m.root, "/../"):
		return hierarchy{}, fmt.Errorf("the cgroup file system at %s does not show the cgroup of the process but those around it (%s): mount the container's own", m.point, m.root)
	}
	below, ok := within(m.root, group)
	if !ok {
		below = group // old kernels show the root of a namespace under its outer name
	}
	tree := hierarchy{v2: v2, top: strings.TrimPrefix(m.point, "/"), groups: groups(below)}
	if err := procfs.Stat(root, tree.file(tree.groups[0], "")); err != nil {
		return hierarchy{}, fmt.Errorf("the cgroup %s of the process is not to be seen below %s: %w", group, m.point, err)
	}
	return tree, nil
}

// membership returns the cgroup of the process for a controller, from /proc/self/cgroup,
// whose lines are
//
//	4:cpu,cpuacct:/docker/0a1b
//	0::/system.slice/shop.service
//
// The first is of cgroup v1, the second of v2, which has the controllers that v1 has not.
func membership(text, controller string) (group string, v2, ok bool) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		at := path.Clean(strings.TrimSuffix(parts[2], " (deleted)"))
		if strings.HasPrefix(parts[2], "/..") {
			at = parts[2] // Clean would hide it
		}
		if slices.Contains(strings.Split(parts[1], ","), controller) {
			return at, false, true
		}
		if parts[0] == "0" && parts[1] == "" {
			group, v2, ok = at, true, true
		}
	}
	return group, v2, ok
}

// mount is a cgroup file system.
type mount struct {
	root  string // the cgroup that is seen at point
	point string
}

// findMount returns where the hierarchy of a controller is mounted, from
// /proc/self/mountinfo, whose lines are
//
//	36 31 0:34 /docker/0a1b /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
//
// Of several mounts it is the one that shows most of the cgroups above the process, and if
// none shows the process under the name that it has in /proc/self/cgroup, the first.
func findMount(text, controller string, v2 bool, group string) (best mount, ok bool) {
	shown := false
	for line := range strings.Lines(text) {
		m, found := parseMount(line, controller, v2)
		if !found {
			continue
		}
		_, shows := within(m.root, group)
		if !ok || shows && (!shown || len(m.root) < len(best.root)) {
			best, ok, shown = m, true, shows
		}
	}
	return best, ok
}

// parseMount reads a line of mountinfo, and reports whether it is the hierarchy of the
// controller.
func parseMount(line, controller string, v2 bool) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 3 {
		return mount{}, false
	}
	m := mount{root: unescape(left[3]), point: path.Clean(unescape(left[4]))}
	if !strings.HasPrefix(m.root, "/") || !strings.HasPrefix(m.point, "/") {
		return mount{}, false
	}
	if v2 {
		return m, right[0] == "cgroup2"
	}
	return m, right[0] == "cgroup" && slices.Contains(strings.Split(right[2], ","), controller)
}

// unescape undoes the octal escapes of mountinfo.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}

// within returns what of the path of a cgroup is below another one, the root.
func within(root, group string) (below string, ok bool) {
	if root == "/" {
		return group, true
	}
	below, ok = strings.CutPrefix(group, root)
	return below, ok && (below == "" || below[0] == '/')
}

// groups returns a cgroup and those above it.
func groups(below string) (names []string) {
	for below = strings.Trim(below, "/"); below != "" && below != "."; below = path.Dir(below) {
		names = append(names, below)
	}
	return append(names, "")
}
