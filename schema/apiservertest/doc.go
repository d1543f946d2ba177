// Package apiservertest runs the API server for custom resources inside your test process, without
// binaries or ports. Ordinary clients send requests to it:
//
//	s := apiservertest.Start(t, apiservertest.Webhooks(hooks)) // a *registration.Webhooks
//	client, err := dynamic.NewForConfig(s.Config())
//
// The server is the code of kube-apiserver: k8s.io/apiextensions-apiserver with the admission
// plugins, the storage and the watch cache of k8s.io/apiserver. Only etcd is replaced, by a store
// in memory that passes upstream's conformance tests. The server therefore supports:
//
//   - defaulting, pruning, validation and conversion of custom objects.
//   - the subresources status and scale, finalizers, preconditions and dry run.
//   - all patch types, server-side apply, managedFields and field validation.
//   - watches with bookmarks, paginated lists, and tables.
//   - discovery, and the OpenAPI of custom resources.
//
// # Initial objects
//
// The server is ready when it has the objects that the options add. [Manifests] and [Objects] add
// CustomResourceDefinitions (CRDs), webhook configurations, admission policies and other objects,
// and [Webhooks] adds the registration of your operator. [Stored] adds custom objects in the form
// in which an earlier release of your operator stored them. The namespaces default, kube-system,
// kube-public and kube-node-lease always exist. Clients can create, change and delete objects of
// all these kinds.
//
// # Webhooks and policies
//
// The admission plugins apply the rules, selectors, match conditions, failure policies and
// timeouts of webhooks. If there is a [Handler], it gets all webhook requests directly, and the
// caBundle is ignored. ValidatingAdmissionPolicies and MutatingAdmissionPolicies take effect, with
// bindings and parameters.
//
// A moment after a write, the server also converts the object for the caches of the other served
// versions. To count conversions, run the test in a bubble of testing/synctest, and call
// synctest.Wait before you look.
//
// A controller-runtime manager needs the server's config, but the server needs the manager's
// webhooks. Give both the same http.ServeMux, to which the manager adds its webhooks later:
//
//	webhooks := http.NewServeMux()
//	s := apiservertest.Start(t, apiservertest.Manifests(manifests), apiservertest.Handler(webhooks))
//	mgr, err := ctrl.NewManager(s.Config(), ctrl.Options{
//		Scheme:        scheme.Scheme,
//		WebhookServer: webhook.NewServer(webhook.Options{WebhookMux: webhooks, Port: -1}), // does not listen
//	})
//
// # Clients
//
// [Server.Config] configures client-go, the dynamic client, informers and controller-runtime. For
// kubectl, pass the Server, which is an http.Handler, to httptest.NewServer, and pass the resulting
// URL with --server. [EmulateVersion] emulates an older release of Kubernetes.
//
// # Authorization
//
// With [RBAC], the server authorizes requests as kube-apiserver does, by the Roles and bindings of your
// manifests, so that a test fails where the operator would fail in a cluster. [Server.Access] reports which rules were
// missing, which granted rules the test did not need, and which suffice. SubjectAccessReviews, SelfSubjectAccessReviews
// and LocalSubjectAccessReviews are answered.
//
// # Faults
//
// [Server.Inject] makes requests of clients fail: the second update of a kind with a conflict, a creation whose answer is
// lost, all watches, or every request for a while.
//
// # Aggregated API servers
//
// [RESTOptions] stores the objects of an aggregated API server in memory, so that its tests need no etcd.
//
// # Several servers
//
// Tests with servers can run in parallel, because servers share only the metrics and the log of
// the process. Each server logs about 45 lines, mostly with klog. To log errors only, call this
// in TestMain:
//
//	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
//
// # Time
//
// A server that was started in a bubble of testing/synctest uses the clock of the bubble, so
// that a test that sleeps for an hour ends at once. A day of bubble time takes about half a
// minute of real time, because the server wakes up often.
//
// Apimachinery limits the rate of logged errors by the time of the last error of the process. If
// the clock of a bubble is behind that time, the limit makes the server sleep for years of bubble
// time. If a package has bubbles, remove the limit in TestMain:
//
//	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
//
// # Built-in kinds
//
// Clients can create, list, watch, patch and apply the stable kinds of Kubernetes, such as
// Namespaces, Secrets, Pods, Deployments, Events and Leases, with metadata, generation, status and
// field selectors as in a cluster. They are served without the watch cache. Beyond metadata, they are neither validated
// nor defaulted, because that code is in kube-apiserver itself, not in its libraries. There are
// exceptions: webhook configurations and policies are defaulted, and their expressions, rules and enumerated values
// are checked; an update cannot change selectors of workloads, the template of a Job, the roleRef of a binding, the type of a
// Secret and immutable data; stringData of a Secret becomes data; a new Node has the taint not-ready; and deleting a
// namespace deletes its contents.
//
// Types that a program adds to client-go's scheme.Scheme are served by their CRDs only. CRDs in a
// group version of built-in kinds are not served, as in a cluster.
//
// # Limitations
//
//   - Only the controllers of CRDs and namespaces run: no schedulers, no kubelets, and no garbage
//     collector. A deleted Pod is gone at once, even if it is bound to a node, and so is a deleted
//     Job, whose Pods a cluster orphans by default.
//   - An update may change some fields of built-in kinds that are immutable in a cluster, such as the containers of a Pod.
//     Names of Jobs and CronJobs are not limited to 63 and 52 characters, claims and volumes get no finalizers, Services no
//     clusterIP, and Jobs no labels and no selector.
//   - Names, messages and duplicates in webhook configurations and policies are not checked, except names of webhooks.
//   - Quotas, aggregation and the group authentication.k8s.io are missing. Without [RBAC], every
//     request is allowed.
//   - Built-in kinds have no subresources except status, scale and pods/binding. They have no
//     OpenAPI, so that MutatingAdmissionPolicies with an applyConfiguration fail for them. Tables
//     have only their name and age, there is no category all, and HorizontalPodAutoscalers have
//     only the version v2.
//   - CBOR is refused, because the feature gate CBORServingAndStorage is off by default.
//   - Creating an object within two seconds of its CRD is delayed by two seconds, as in a cluster
//     (serveResource in apiextensions-apiserver/pkg/apiserver/customresource_handler.go), unless the
//     CRD is initial.
//   - Test binaries are large. With go test -tags grpcnotrace, the linker drops unused methods: the binary of a small test
//     with controller-runtime has 63 MB instead of 86. It keeps them if the test calls go-cmp or text/template.
//   - With a [Handler], webhooks are called without TLS, and Services and certificates are not tested.
//   - While the watch cache of a CRD is being filled, watches wait for up to a second. A cluster
//     answers 429, and clients try again a second later.
package apiservertest
