// Package client is the Go client of Holdfast's work queue, over go-redis.
package client
