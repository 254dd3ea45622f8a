package main

import (
	"fmt"
	"path"
	"strings"
)

// dependabotFile says which modules Dependabot raises.
const dependabotFile = ".github/dependabot.yml"

// dependabot returns the configuration for the modules that exist.
func (r *repository) dependabot() []byte {
	var newest, oldest strings.Builder
	for _, m := range r.modules {
		list := &newest
		if m.oldest() {
			list = &oldest
		}
		fmt.Fprintf(list, "      - %s\n", path.Join("/", m.dir))
	}
	return fmt.Appendf(nil, `# Written by make tidy, which knows the modules.
version: 2
updates:
  # These require the newest versions: all modules are tested with them.
  - package-ecosystem: gomod
    directories:
%s    schedule:
      interval: weekly
    groups:
      go:
        patterns: ["*"]
    ignore:
      - dependency-name: %s*

  # These require the oldest versions that work, so that those who use them keep theirs: only vulnerabilities raise them.
  - package-ecosystem: gomod
    directories:
%s    schedule:
      interval: weekly
    open-pull-requests-limit: 0

  - package-ecosystem: github-actions
    directory: /
    schedule:
      interval: weekly
`, newest.String(), r.modules[0].path(), oldest.String())
}
