package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// tags checks that the version of the file VERSION can be released from the present
// commit, and prints the tags, each after those of the modules it requires, and what to
// do with them. With dry it prints them even if something is missing.
func (r *repository) tags(ctx context.Context, out io.Writer, dry bool) error {
	missing := errors.Join(r.checkModules(), r.checkChangelog(), r.checkTree(ctx))
	if missing != nil && !dry {
		return missing
	}
	fmt.Fprintf(out, "The tags of %s, in their order:\n\n", r.version)
	var tags []string
	for _, m := range r.ordered() {
		if m.released() {
			tags = append(tags, m.tag(r.version))
			fmt.Fprintln(out, "  "+m.tag(r.version))
		}
	}
	fmt.Fprintf(out, `
When CI is green for this commit, tag it and push all tags at once:

  for tag in %[1]s; do git tag -a -m %[2]s $tag; done
  git push --atomic origin %[1]s

Then have the module proxy fetch what was tagged, from any folder outside of the repository:

  for module in %[3]s; do GOPROXY=proxy.golang.org go list -m $module@%[2]s; done

A tag is never moved: proxies and checksum databases keep the first they have seen. A mistake is mended by the next
version.
`, strings.Join(tags, " "), r.version, strings.Join(r.releasedPaths(), " "))
	return missing
}

// releasedPaths returns the paths of the released modules, in the order of their tags.
func (r *repository) releasedPaths() (paths []string) {
	for _, m := range r.ordered() {
		if m.released() {
			paths = append(paths, m.path())
		}
	}
	return paths
}

// checkModules reports modules that do not require the version of the others, and what
// go install refuses, or others could not download.
func (r *repository) checkModules() error {
	var errs []error
	for _, m := range r.modules {
		if !m.released() {
			continue
		}
		for _, replaced := range m.file.Replace {
			if r.find(replaced.Old.Path) == nil {
				errs = append(errs, fmt.Errorf("%s replaces %s: go install refuses that; take it out", m.modFile(), replaced.Old.Path))
			}
		}
		for _, excluded := range m.file.Exclude {
			errs = append(errs, fmt.Errorf("%s excludes %s: go install refuses that; take it out", m.modFile(), excluded.Mod))
		}
		for _, required := range m.file.Require {
			other := r.find(required.Mod.Path)
			own := strings.HasPrefix(required.Mod.Path, r.modules[0].path()+"/")
			if own && (other == nil || !other.released()) {
				errs = append(errs, fmt.Errorf("%s requires %s, which is not released", m.modFile(), required.Mod.Path))
			}
		}
	}
	changes, err := r.versionChanges(r.version)
	errs = append(errs, err)
	for _, c := range changes {
		errs = append(errs, fmt.Errorf("%s does not have version %s: run make tidy", c.name, r.version))
	}
	return errors.Join(errs...)
}

// checkChangelog reports a changelog without a section for the version.
func (r *repository) checkChangelog() error {
	text, err := r.readFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	heading := "## [" + strings.TrimPrefix(r.version, "v") + "]"
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, heading) {
			return nil
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section %q: give what is in [Unreleased] that heading, with the date", heading)
}

// checkTree reports changes that are not committed, and tags that are taken.
func (r *repository) checkTree(ctx context.Context) error {
	var errs []error
	status, err := git(ctx, r.root, "status", "--porcelain")
	errs = append(errs, err)
	if status != "" {
		errs = append(errs, fmt.Errorf("not everything is committed:\n%s", status))
	}
	existing, err := git(ctx, r.root, "tag", "--list")
	errs = append(errs, err)
	tags := strings.Fields(existing)
	for _, m := range r.modules {
		if tag := m.tag(r.version); m.released() && slices.Contains(tags, tag) {
			errs = append(errs, fmt.Errorf("the tag %s exists: run go run ./tools/release set with the next version", tag))
		}
	}
	return errors.Join(errs...)
}
