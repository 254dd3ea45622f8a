package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
)

func TestOneInstanceThatHasSeenACallIsEnough(t *testing.T) {
	rule := func(missing core.Missing, attributes ...string) etcd.UnmatchedRule {
		return etcd.UnmatchedRule{Kind: "hotParam", Rule: "r", Document: "a.yaml", Missing: missing, Attributes: attributes}
	}
	nothing := etcd.UnmatchedRule{}
	for name, test := range map[string]struct {
		at   []etcd.UnmatchedRule // of one instance each; zero: nothing is missing there
		want []etcd.UnmatchedRule
	}{
		"none has seen the resource":     {[]etcd.UnmatchedRule{rule("resource"), rule("resource")}, []etcd.UnmatchedRule{rule("resource")}},
		"one has seen all":               {[]etcd.UnmatchedRule{rule("resource"), nothing}, nil},
		"one has seen the resource":      {[]etcd.UnmatchedRule{rule("resource"), rule("call", "user")}, []etcd.UnmatchedRule{rule("call", "user")}},
		"one was asked":                  {[]etcd.UnmatchedRule{rule("call", "user"), rule("attribute", "user")}, []etcd.UnmatchedRule{rule("attribute", "user")}},
		"each has seen another":          {[]etcd.UnmatchedRule{rule("attribute", "user"), rule("attribute", "tenant")}, nil},
		"both have seen the same":        {[]etcd.UnmatchedRule{rule("attribute", "a", "b"), rule("attribute", "b")}, []etcd.UnmatchedRule{rule("attribute", "b")}},
		"one has not seen the origin":    {[]etcd.UnmatchedRule{rule("origin"), rule("resource")}, []etcd.UnmatchedRule{rule("origin")}},
		"nobody reports, nobody accuses": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var reports []etcd.Report
			for _, at := range test.at {
				r := etcd.Report{Digest: "d"}
				if at.Rule != "" {
					r.Unmatched = []etcd.UnmatchedRule{at}
				}
				reports = append(reports, r)
			}
			reports = append(reports, etcd.Report{Instance: "old"})
			u := unmatchedBy(reports, anyDocument)
			assert.ElementsMatch(t, test.want, u.rules)
			assert.Equal(t, []string{"old"}, u.silent)
		})
	}
}
