// Package fuzz holds the fuzz targets: request and reply frames, stored records, and the broker
// behind real sockets against a plain model. Inputs that once failed stay under testdata/fuzz and
// are run by go test. The folders below run whole servers: crash kills them and fills their disk,
// wire speaks to them byte by byte.
package fuzz
