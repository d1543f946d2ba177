// Package offline runs the API server for custom resources inside the test process: no
// binaries, no ports, no waiting. Ordinary clients talk to it.
//
//	s := offline.Start(t, offline.Webhooks(hooks)) // a *registration.Webhooks
//	client, err := dynamic.NewForConfig(s.Config())
//
// It is the code of kube-apiserver: k8s.io/apiextensions-apiserver with the admission plugins,
// the storage and the watch cache of k8s.io/apiserver. Only etcd is replaced, by a store in
// memory that passes upstream's conformance tests. So these are what a cluster answers:
// defaults, pruning, validation, conversion, status and scale, server-side apply and
// managedFields, every patch, watches, bookmarks and pages, field validation, preconditions, dry
// run, finalizers, tables, discovery, and OpenAPI of custom resources.
//
// # What is there at the start
//
// [Manifests] and [Objects] name the definitions, webhook configurations, admission policies and
// other objects that the server has when it is ready. [Webhooks] takes an operator's
// registration as it is. [Stored] puts custom objects into the store as an earlier release has
// left them. Clients create, change and delete all of these later, too.
//
// The namespaces default, kube-system, kube-public and kube-node-lease exist.
//
// # Webhooks and policies
//
// The plugins of the server call the webhooks, with their rules, selectors, match conditions,
// policies and timeouts. The requests go straight to the [Handler]; caBundle is not used.
// [Server.WebhookCalls] returns them, with the answers.
// ValidatingAdmissionPolicies and MutatingAdmissionPolicies work, with bindings and parameters.
//
// # Older releases
//
// [EmulateVersion] has a server accept and serve what an older release of Kubernetes does, as far
// as the code of the new release can.
//
// # Clients
//
// [Server.Config] is for client-go, informers, the dynamic client and controller-runtime. It may
// do everything; with Impersonate, another user asks. A [Server] is an [http.Handler]: behind an
// httptest.NewServer, kubectl works with --server and its URL.
//
// Servers share only the metrics and the log of the process, so tests that have one each run in
// parallel. Most of some 45 lines that each logs go straight to klog. This, in TestMain, leaves the
// errors:
//
//	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
//
// In a bubble of testing/synctest, a server lives by the clock of the bubble: a test that sleeps for an hour ends
// at once. (A day takes about half a minute, because the server wakes up often.) Apimachinery limits
// the rate of logged errors by a clock of the whole process, and sleeps for years where that of a
// bubble is behind. A package with bubbles switches the limit off in TestMain:
//
//	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
//
// # Built-in kinds
//
// The stable kinds of client-go's scheme, such as Namespaces, Secrets, Pods, Deployments, Events and
// Leases, are stored, listed, watched, patched and applied with real metadata, generation and status.
// Their own validation and defaulting, which only kube-apiserver has, are not there; webhook
// configurations and policies have the defaults, and the checks of expressions, that they need.
// Deleting a namespace deletes what is in it.
//
// # What is not there
//
// There are no controllers but those of definitions and namespaces: no scheduler and no garbage
// collector. There is no authorization, no quota, and no aggregation; no OpenAPI of
// built-in kinds; no subresource of them but status. CBOR is refused, as by kube-apiserver, whose
// feature gate CBORServingAndStorage is off by default.
//
// After a definition has been created by a client, the first creation of an object waits two
// seconds, as in a cluster (serveResource of
// apiextensions-apiserver/pkg/apiserver/customresource_handler.go). Definitions that are there at
// the start are not new.
package offline
