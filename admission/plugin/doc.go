// Package plugin runs the functions of an admission handler inside an aggregated API server.
//
// A [Plugin] is an admission plug-in of k8s.io/apiserver that makes the decisions of a handler of
// package admission without HTTP: the server passes the objects of a request to the plug-in, which
// changes the object or returns an error.
//
//	toppings := plugin.New("RestaurantToppings")
//	toppings.Register(options.Admission.Plugins)
//	options.Admission.RecommendedPluginOrder = append(options.Admission.RecommendedPluginOrder, "RestaurantToppings")
//	// when the informers that the functions need exist:
//	toppings.Handle(admission.NewHandler(scheme, admission.Mutate(…), admission.Validate(…)))
//
// Functions see objects as in a webhook: in the version of the request, or in their own version
// with [admission.ConvertWith]. The filters, the context of a function, warnings, audit annotations
// and observers work as in a webhook. A plug-in differs from a webhook as follows:
//
//   - A plug-in has no rules. It calls a function for each request for its kind, operation and
//     subresource.
//   - A plug-in has no failurePolicy. If an error leaves a request undecided, the request fails.
//   - The server calls all mutating plug-ins before the validating ones, so the observer of a
//     handler that has functions of both kinds is called twice for a request.
//   - If a collection is deleted, functions are called for each object, but not for the collection.
//
// [admission.ConvertWith]: https://pkg.go.dev/github.com/crdkit/crdkit/admission#ConvertWith
package plugin
