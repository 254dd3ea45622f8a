// File shows rules that are read from a file and reloaded when it changes. Edit
// the file that it names while it runs; it ends after a minute.
//
//	go run ./examples/file
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/datasource/file"
)

const document = `flow:
  - {resource: greet, limit: 5}
`

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "penstock-file")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		return err
	}
	source, err := file.New(path, file.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := penstock.Follow(ctx, source); err != nil {
		return err
	}
	if err := penstock.Ready(ctx); err != nil {
		return err
	}
	fmt.Println("edit", path)
	for ctx.Err() == nil {
		fmt.Printf("%d of 20 calls passed, rules of revision %d\n", greet(ctx, 20), penstock.Default().Status().Revision)
		time.Sleep(time.Second)
	}
	return nil
}

func greet(ctx context.Context, calls int) (passed int) {
	for range calls {
		if penstock.Do(ctx, "greet", func(context.Context) error { return nil }) == nil {
			passed++
		}
	}
	return passed
}
