// Package holds measures how long one client's request, at the limit of what it may ask for, holds
// the others: how long a PING beside it waits at most.
package holds
