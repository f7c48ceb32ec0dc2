// Package wire speaks to a running server in the bytes of the pinpriq document, over a plain
// socket and with no code of the server's own, and checks one behaviour a test.
//
// A test that nothing arrives sends a pop of an empty queue after the cause: replies and deliveries
// come in the order of what caused them, so when the two bytes of its reply come first, there was
// nothing before.
package wire
