package record

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// NewToken returns 128 random bits in hexadecimal: the name of one acquisition.
func NewToken() string {
	bits := binary.NativeEndian.AppendUint64(nil, rand.Uint64()) // no secret: the runtime's generator, seeded by the kernel, suffices
	return hex.EncodeToString(binary.NativeEndian.AppendUint64(bits, rand.Uint64()))
}
