// Package review is the framing that both webhook protocols share: the API
// server POSTs an object with a request, and reads the same object back with a
// response. ConversionReview (apiextensions.k8s.io) and AdmissionReview
// (admission.k8s.io) differ only in what the request and the response hold.
//
// The framing checks the method, the content type and the size, finds the
// version and the UID, sets the deadline, and writes an answer that the API
// server accepts, also when everything went wrong. It decodes nothing but
// strings: a handler loops over the members of the [Request].
package review
