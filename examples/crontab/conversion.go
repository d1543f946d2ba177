package crontab

import (
	"context"
	"errors"
	"net"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
)

// NewRegistry returns the conversions of CronTabs: v1 is the hub, and v1beta1 its spoke. An
// error means that this program is wrong.
//
// If port were an integer, no functions would be needed: conversion.Split tells where
// such a hostPort ends. With a string as the port, it cuts at the first colon, and an IPv6
// address has more of them.
func NewRegistry() (*conversion.Registry, error) {
	reg := conversion.NewRegistry(runtime.NewScheme()) // no Go types are needed
	v1beta1 := schema.GroupVersionKind{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}
	return reg, conversion.AddUnstructuredSpoke(reg, v1beta1, "v1", splitHostPort, joinHostPort)
}

// splitHostPort is the way to v1. It refuses what would not come back as it was.
func splitHostPort(_ context.Context, in, out *unstructured.Unstructured) error {
	copyBody(in, out)
	hostPort, found, err := unstructured.NestedString(out.Object, "spec", "hostPort")
	if err != nil || !found {
		return err
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || net.JoinHostPort(host, port) != hostPort {
		return field.Invalid(field.NewPath("spec", "hostPort"), hostPort, "must be host:port, or [host]:port for an IPv6 address")
	}
	spec := out.Object["spec"].(map[string]any)
	delete(spec, "hostPort")
	spec["host"], spec["port"] = host, port
	return nil
}

// joinHostPort is the way back.
func joinHostPort(_ context.Context, in, out *unstructured.Unstructured) error {
	copyBody(in, out)
	path := field.NewPath("spec")
	host, hasHost, hostErr := unstructured.NestedString(out.Object, "spec", "host")
	port, hasPort, portErr := unstructured.NestedString(out.Object, "spec", "port")
	switch {
	case hostErr != nil || portErr != nil:
		return errors.Join(hostErr, portErr)
	case !hasHost && !hasPort:
		return nil
	case !hasHost:
		return field.Required(path.Child("host"), "port "+port+" has no host")
	case !hasPort:
		return field.Required(path.Child("port"), "host "+host+" has no port")
	}
	hostPort := net.JoinHostPort(host, port)
	if h, p, err := net.SplitHostPort(hostPort); err != nil || h != host || p != port {
		return field.Invalid(path.Child("host"), host, "cannot be joined with port "+port)
	}
	spec := out.Object["spec"].(map[string]any)
	delete(spec, "host")
	delete(spec, "port")
	spec["hostPort"] = hostPort
	return nil
}

// copyBody copies what is the same in both versions, and more. Metadata has been taken care
// of, and so has apiVersion.
func copyBody(in, out *unstructured.Unstructured) {
	for name, value := range in.Object {
		if name != "metadata" {
			out.Object[name] = runtime.DeepCopyJSONValue(value)
		}
	}
}
