package command

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func TestTransferFailsWithoutProgressAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var out bytes.Buffer
		env := Env{Err: &out, ErrIsTerminal: true}
		_, err := transfer(t.Context(), env, &session{}, "writing", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
			for i := range int64(10) {
				time.Sleep(requestTimeout - time.Second)
				progress((i+1)<<20, 10<<20)
			}
			<-ctx.Done()
			return store.ListInfo{}, ctx.Err()
		})
		require.ErrorContains(t, err, "etcd has not answered for 30s")
		var f failure
		require.ErrorAs(t, err, &f)
		assert.Equal(t, ExitFailed, f.code)
		assert.Equal(t, 10*(requestTimeout-time.Second)+requestTimeout, time.Since(begun))
		assert.Contains(t, out.String(), "\rwriting: 2.0 of 10.0 MiB\r")
		assert.True(t, strings.HasSuffix(out.String(), "\x1b[K"))

		_, err = transfer(t.Context(), env, &session{}, "writing", func(context.Context, func(done, of int64)) (store.ListInfo, error) {
			return store.ListInfo{}, errors.Join(store.ErrNoList)
		})
		require.ErrorAs(t, err, &f)
		assert.Equal(t, ExitNo, f.code)
	})
}
