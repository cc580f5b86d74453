package steps

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"time"

	"adlock/test/need"
)

// Sample: outside a soak a test tries one in so many points.
const Sample = 5

// Drawn reports whether a test tries the point of that name: in a soak each one, else a sample.
// ADLOCK_TEST_SEED draws the same sample again.
func Drawn(point string) bool {
	if need.Soak {
		return true
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, seed(), point)
	return sum.Sum64()%Sample == 0
}

var seed = sync.OnceValue(func() uint64 {
	n, err := strconv.ParseUint(os.Getenv("ADLOCK_TEST_SEED"), 10, 64)
	if err != nil {
		n = uint64(time.Now().UnixNano()) % 1_000_000
	}
	fmt.Printf("ADLOCK_TEST_SEED=%d\n", n)
	return n
})
