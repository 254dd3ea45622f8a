package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/flow"
)

// followedRules are the rules of a document that always exists. No version of it has
// higher limits than these.
func followedRules() []flow.Rule {
	return []flow.Rule{
		{Name: "followed", Resource: "followed", Limit: 200},
		{Name: "followed bucket", Resource: "followed bucket", Limit: 200, Algorithm: flow.TokenBucket, Burst: 50},
	}
}

// document returns a version of that document.
func document(i int) []byte {
	return fmt.Appendf(nil, "flow:\n  - {name: followed, resource: followed, limit: %d}\n"+
		"  - {name: followed bucket, resource: followed bucket, limit: %d, algorithm: tokenBucket, burst: 50}\n", 200-i%100, 200-i%60)
}

func newSource(dir string) (core.Source, error) {
	return file.New(dir, file.Options{Interval: 20 * time.Millisecond})
}

// write writes and removes documents until ctx ends: complete and in parts, valid and
// broken.
func (s *soak) write(ctx context.Context, random *rand.Rand) {
	temporary := filepath.Join(s.dir, "temporary.yaml")
	for i := 1; ctx.Err() == nil; i++ {
		var err error
		switch random.IntN(7) {
		case 0, 1:
			err = s.replace("followed.yaml", document(i))
		case 2:
			err = s.replace("followed.yaml", []byte("flow:\n  - {resource: followed, limit: -1}\n"))
		case 3:
			err = s.replace("temporary.yaml", fmt.Appendf(nil, "flow: [{match: 'name:*', limit: %d}]", 100+i%50))
		case 4: // in place and in parts
			err = os.WriteFile(temporary, []byte("flow: [{match: 'na"), 0o600)
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			if err == nil {
				err = os.WriteFile(temporary, []byte("flow: [{match: 'name:?', limit: 9}]"), 0o600)
			}
		case 5:
			if err = os.Remove(temporary); os.IsNotExist(err) {
				err = nil
			}
		case 6: // as when a volume is remounted
			if err = os.Rename(s.dir, s.dir+".away"); err == nil {
				time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
				err = os.Rename(s.dir+".away", s.dir)
			}
		}
		if err != nil {
			s.findings.add("writing documents: %v", err)
			return
		}
		s.writes.Add(1)
		time.Sleep(time.Duration(10+random.IntN(90)) * time.Millisecond)
	}
}

func (s *soak) replace(name string, document []byte) error {
	temporary := filepath.Join(s.dir, ".new")
	if err := os.WriteFile(temporary, document, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(s.dir, name))
}

// checkLastVersion writes a last version and checks that it comes into force.
func (s *soak) checkLastVersion() {
	if err := s.replace("followed.yaml", document(0)); err != nil {
		s.findings.add("writing documents: %v", err)
		return
	}
	for range 6000 { // two minutes
		for _, p := range s.main.Quotas("followed") {
			if source := s.main.Status().Sources[0]; p.Name == "followed" && p.Quota.Limit == 200 && source.Connected {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.findings.add("the last version of a document is not in force: %+v", s.main.Status().Sources)
}
