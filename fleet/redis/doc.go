// Package redis is a [fleet.Store] in Redis or Valkey.
package redis
