package steps

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"time"

	"adlock/test/support/need"
)

// Sample returns N if a test is to try one in N points: all in a soak.
func Sample() int {
	if need.Soak {
		return 1
	}
	return 5
}

// Drawn reports whether the sample has the point of that name. With the printed ADLOCK_TEST_SEED
// the same sample is drawn again.
func Drawn(point string) bool {
	size := Sample()
	if size == 1 {
		return true
	}
	sum := fnv.New64a()
	fmt.Fprint(sum, seed(), point)
	return sum.Sum64()%uint64(size) == 0
}

var seed = sync.OnceValue(func() uint64 {
	n, err := strconv.ParseUint(os.Getenv("ADLOCK_TEST_SEED"), 10, 64)
	if err != nil {
		n = uint64(time.Now().UnixNano()) % 1_000_000
	}
	fmt.Printf("ADLOCK_TEST_SEED=%d\n", n)
	return n
})
