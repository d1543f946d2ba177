package pipeline

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// MaxRequest is the size of the largest request that the server reads
	// (apiserver/pkg/server/config.go, MaxRequestBodyBytes).
	MaxRequest = 3 << 20
	// MaxTime is how long the server works at a write
	// (apiserver/pkg/endpoints/handlers/rest.go, requestTimeoutUpperBound).
	MaxTime = 34 * time.Second
)

// Timeout is the server's error of a write whose context has ended
// (apiserver/pkg/endpoints/handlers/finisher/finisher.go, FinishRequest).
func Timeout(ended error) error {
	return apierrors.NewTimeoutError(fmt.Sprintf("request did not complete within requested timeout - %s", ended), 0)
}
