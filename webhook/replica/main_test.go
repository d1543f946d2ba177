package replica_test

import "crypto/tls"

// A kubelet does not verify the certificate of what it probes.
var insecure = &tls.Config{InsecureSkipVerify: true}
