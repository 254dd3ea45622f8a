// Package sqltest has tests of guarded databases with a real one, SQLite, which needs no server.
// It is a module of its own, so that the package it tests needs no dependency.
package sqltest
