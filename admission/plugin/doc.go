// Package plugin runs the functions of an admission handler inside an aggregated API server.
//
// A [Plugin] is an admission plug-in of k8s.io/apiserver. It makes the decisions of a handler of
// package admission, without HTTP: the server gives it the objects, and gets back the changed
// object or an error.
//
//	toppings := plugin.New("RestaurantToppings")
//	toppings.Register(options.Admission.Plugins)
//	// when the informers that the functions need exist:
//	toppings.Handle(admission.NewHandler(scheme, admission.Mutate(…), admission.Validate(…)))
//
// Functions see objects as in a webhook: in the version of the request, or in their own version
// with [admission.ConvertWith]. The filters, the context of a function, warnings, audit annotations
// and observers work as in a webhook. Differences are:
//
//   - There are no rules. The plug-in calls a function for each request for its kind, operation and
//     subresource.
//   - There is no failurePolicy. An error that leaves a request undecided fails the request.
//   - The server calls mutating plug-ins before all validating ones, so an observer of a handler
//     with both kinds of functions is called twice for a request.
//   - For the deletion of a collection, functions are called for each object, not for the
//     collection.
//
// [admission.ConvertWith]: https://pkg.go.dev/github.com/crdkit/crdkit/admission#ConvertWith
package plugin
