package record

import (
	"fmt"
	"math/rand/v2"
)

// NewToken returns 128 random bits in hexadecimal: the name of one acquisition.
func NewToken() string {
	return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) // no secret: the runtime's generator, seeded by the kernel, suffices
}
