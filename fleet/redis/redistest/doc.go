// Package redistest runs real Redis or Valkey servers for tests, and disturbs them: it kills,
// pauses, empties and replaces them.
//
// It needs the program redis-server or valkey-server on the PATH, or its path in the
// environment variable PENSTOCK_REDIS_SERVER. Tests that only need a server may also use one
// that runs already, at the host:port in the environment variable PENSTOCK_REDIS_ADDR. Without
// either, tests are skipped and say what to install.
package redistest
