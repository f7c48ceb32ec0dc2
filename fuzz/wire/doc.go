// Package wire speaks to a running server in the bytes of the pinpriq and barbershop documents,
// over a plain socket and without code of the server. Each test checks one behaviour.
//
// To prove that nothing arrives, a test sends a pop of an empty queue after the cause. Replies and
// deliveries come in the order of their causes. So when the two bytes of that reply come first,
// nothing came before.
package wire
