// Package envtest is sigs.k8s.io/controller-runtime/pkg/envtest without binaries: its Environment runs the API
// server of package apiservertest in the test process. In kubebuilder's suite_test.go, change one import:
//
//	"github.com/crdkit/crdkit/interop/controllerruntime/envtest" // was sigs.k8s.io/controller-runtime/pkg/envtest
//
// Upstream's code still reads the CustomResourceDefinitions (CRDs) and webhook configurations, and makes the
// certificates. The API server has all objects when it starts, and calls the manager's webhooks over the network.
//
// # Limitations
//
//   - Built-in kinds are neither validated nor defaulted; see the limitations of package apiservertest.
//   - There is no port, so upstream's fields ControlPlane and KubeConfig are missing. For kubectl, pass the field
//     Server to httptest.NewServer.
//   - Environment variables such as KUBEBUILDER_ASSETS and USE_EXISTING_CLUSTER are ignored.
package envtest
