package record

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// NewToken returns 128 random bits in hexadecimal: the name of one acquisition.
func NewToken() string {
	var bits [16]byte // not a secret: the runtime's generator, seeded by the kernel, suffices
	binary.NativeEndian.PutUint64(bits[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(bits[8:], rand.Uint64())
	return hex.EncodeToString(bits[:])
}
