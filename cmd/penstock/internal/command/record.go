package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/recording"
)

// recordPatience is how long a service may take beside the time that it records.
const recordPatience = time.Minute

func newRecord(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record --engine ADDRESS --for TIME -o FILE [flags]",
		Short: "Record the calls of running services, to try rules on them",
		Long: `Record has running services record their calls for a time, and writes them to a file:
who called what and when, which rule refused it, how long it waited and lasted. Then
penstock simulate --calls FILE --rules PATH tells what other rules would have done.

With --last in place of --for it takes the calls of the time before, from services
whose engines record always (core.Config.Recorder).

The services must allow it: inspect.Handler with Recordings in its inspect.Options.
--engine is its address, as host and port or as a URL. With several, or with --app,
all record at the same time, and the calls are in one file. A service that does not
answer is named, in the file too.

The file has names of callers, and users as hashes unless the services record them as
they are. It can be read by its owner only.

Exit code: 0 when all services have recorded, 2 for a wrong command line, 3 when one of
them or etcd failed: the file then has the calls of the others.

` + connection.Help,
		Example: `  penstock record --engine 127.0.0.1:6060 --for 60s -o friday.calls
  penstock record --engine 127.0.0.1:6060 --last 5m -o friday.calls
  penstock record --app shop --for 2m -o friday.calls
  penstock simulate --calls friday.calls --rules new/ --against old/`,
		Args: arguments(0, 0, ""),
	}
	var r recordRequest
	r.addFlag(cmd)
	cmd.Flags().Var(&r.next, "for", "record the calls of this time, from now on")
	cmd.Flags().Var(&r.last, "last", "take the calls of this time before now")
	cmd.Flags().StringVarP(&r.file, "out", "o", "", "write the calls to this `file`")
	tokenFile := cmd.Flags().String("token-file", "", "the `file` with the token of the handlers, if they need one")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := r.check(cmd); err != nil {
			return err
		}
		var err error
		if r.token, err = readToken("--token-file", *tokenFile); err != nil {
			return err
		}
		if len(r.engines) == 0 {
			if err := r.find(env, cmd); err != nil {
				return err
			}
		}
		return env.record(cmd.Context(), r)
	}
	return cmd
}

// recordRequest is what the command line asks for.
type recordRequest struct {
	services

	next, last seconds
	file       string
	token      string // "" for none
}

func (r *recordRequest) check(cmd *cobra.Command) error {
	switch given := cmd.Flags().Changed; {
	case given("for") == given("last"):
		return errors.New("say either --for, to record the calls to come, or --last, for those that were recorded")
	case r.time() <= 0 || r.time() > inspect.MaxRecording:
		return fmt.Errorf("--for and --last must be longer than 0s and at most %v", inspect.MaxRecording)
	case r.file == "":
		return errors.New("name the file for the calls: -o FILE")
	}
	return r.services.check(cmd)
}

// time returns how long the recording is.
func (r *recordRequest) time() time.Duration { return time.Duration(max(r.next, r.last)) }

// readToken returns the token in a file, "" if none is named.
func readToken(flag, file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // a file that the user names
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s: %s is empty: write the token into it", flag, file)
	}
	return token, nil
}

// record has all services record, and writes their calls.
func (env Env) record(ctx context.Context, r recordRequest) error {
	parts, errs := make([]*recording.Recording, len(r.engines)), make([]error, len(r.engines))
	var all sync.WaitGroup
	for i, address := range r.engines {
		all.Go(func() { parts[i], errs[i] = r.ask(ctx, address) })
	}
	env.showRecording(ctx, &all, &r)
	if err := ctx.Err(); err != nil {
		return err
	}
	failed := 0
	for i, err := range errs {
		if err != nil {
			failed++
			fmt.Fprintf(env.Err, "penstock: %s\n", wording.Cell(err.Error()))
			parts[i] = absent(r.engines[i], err.Error(), parts)
		}
	}
	if failed == len(r.engines) {
		return failure{code: ExitFailed}
	}
	for _, name := range r.silent {
		fmt.Fprintf(env.Err, "penstock: %s reports no address, and is not in the recording\n", wording.Cell(name))
		parts = append(parts, absent(name, "it reports no address", parts))
	}
	merged, err := recording.Merge(parts...)
	if err == nil {
		err = writeRecording(r.file, merged)
	}
	if err != nil {
		return failure{ExitFailed, err}
	}
	fmt.Fprintf(env.Out, "%s: %s\n", wording.Printable(r.file), describeRecording(merged))
	if failed+len(r.silent) > 0 {
		return failure{code: ExitFailed}
	}
	return nil
}

// absent returns a recording without calls, of a service that has not recorded.
func absent(name, why string, others []*recording.Recording) *recording.Recording {
	r := &recording.Recording{Instances: []recording.Instance{{Name: name, Error: why}}}
	for _, other := range others {
		if other != nil && other.Instances[0].Error == "" {
			r.Hashed = other.Hashed
		}
	}
	return r
}

// showRecording waits for the services, and tells how far they are.
func (env Env) showRecording(ctx context.Context, all *sync.WaitGroup, r *recordRequest) {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	bar := progress{out: env.Err, patience: 500 * time.Millisecond, silent: !env.ErrIsTerminal}
	defer bar.end()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done(): // the requests end, too
			<-done
			return
		case <-tick.C:
			passed := min(time.Since(begun), r.time())
			bar.tell(fmt.Sprintf("recording: %.0f of %.0f s", passed.Seconds(), r.time().Seconds()))
		}
	}
}

// ask has one service record.
func (r *recordRequest) ask(ctx context.Context, address string) (*recording.Recording, error) {
	at, err := engineURL(address)
	if err != nil {
		return nil, err
	}
	at = at.JoinPath("recording")
	query := url.Values{"for": {r.time().String()}}
	if r.last > 0 {
		query = url.Values{"last": {r.time().String()}}
	}
	at.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, r.time()+recordPatience)
	defer cancel()
	of, err := r.fetch(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("recording at %s: %w", at.Host, err)
	}
	for i := range of.Instances {
		of.Instances[i].Name = cmp.Or(of.Instances[i].Name, at.Host)
	}
	return of, nil
}

func (r *recordRequest) fetch(ctx context.Context, at *url.URL) (*recording.Recording, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	late := time.AfterFunc(r.time()+engineTimeout, func() { cancel(context.DeadlineExceeded) }) // it answers when it has recorded
	response, err := http.DefaultClient.Do(request)
	late.Stop()
	if err != nil {
		return nil, unanswered(cmp.Or(context.Cause(ctx), err), http.MethodGet)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var why inspect.Failure
		if json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&why) != nil || why.Error == "" {
			why.Error = "does it serve the handler of the package inspect, and under that path?"
		}
		return nil, refusedError{response.StatusCode, wording.Printable("it answers " + response.Status), wording.Printable(why.Error)}
	}
	return recording.Read(response.Body)
}

// writeRecording writes a file that its owner alone can read; one that is there stays as it is until the
// new one is complete.
func writeRecording(name string, of *recording.Recording) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".penstock-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails once it is renamed
	out := bufio.NewWriter(file)
	err = errors.Join(recording.Write(out, of), out.Flush(), file.Close())
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return os.Rename(file.Name(), name)
}

// describeRecording says what is in a recording.
func describeRecording(of *recording.Recording) string {
	refused, present := 0, 0
	for i := range of.Calls {
		if of.Calls[i].Outcome == recording.Refused {
			refused++
		}
	}
	for _, i := range of.Instances {
		if i.Error == "" {
			present++
		}
	}
	from, until := of.Span()
	return fmt.Sprintf("%s of %s in %v, %d refused",
		wording.Count(len(of.Calls), "call"), wording.Count(present, "instance"), until.Sub(from).Round(time.Millisecond), refused)
}
