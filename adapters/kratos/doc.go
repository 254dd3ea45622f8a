// Package penstockkratos guards the calls of kratos.
package penstockkratos
