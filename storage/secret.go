package storage

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"
)

// A secret is made with the folder and written into every control record. It is never sent to
// anybody: so a control record that carries it was written by the store, and is not a payload that
// looks like one.
//
// Its file holds the secret and the CRC-32C of it, in hexadecimal digits.
const (
	secretName = "secret"
	secretLen  = 16
)

// openSecret reads the secret of a folder, making it when there is none: of a new folder, and of
// one from before there were secrets.
func openSecret(f *folder) ([]byte, error) {
	secret, err := readSecret(f)
	if secret == nil && err == nil {
		secret = make([]byte, secretLen)
		_, _ = rand.Read(secret) // never fails
		return secret, f.create(secretName, encodeSecret(secret))
	}
	return secret, err
}

// readSecret reads the secret of a folder, nil when there is none.
func readSecret(f *folder) ([]byte, error) {
	const limit = 64
	b, err := readSmall(f.name(secretName), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret of the data folder: %w", err)
	}
	secret, ok := decodeSecret(b)
	if !ok {
		return nil, fmt.Errorf("%w: the file %s does not hold a secret and its checksum, so a torn log cannot be told "+
			"from a damaged one; to open the folder as it is, remove this file", ErrDamaged, f.name(secretName))
	}
	return secret, nil
}

func encodeSecret(secret []byte) []byte {
	return fmt.Appendf(nil, "%x %08x\n", secret, crc32.Checksum(secret, castagnoli()))
}

func decodeSecret(b []byte) (secret []byte, ok bool) {
	digits, _, _ := strings.Cut(string(b), " ")
	secret, err := hex.DecodeString(digits)
	return secret, err == nil && len(secret) == secretLen && string(encodeSecret(secret)) == string(b)
}
