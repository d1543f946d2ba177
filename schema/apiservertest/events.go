package apiservertest

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventCodec stores Events of the group events.k8s.io as those of the core group, as kube-apiserver does, so that clients find each
// Event in both groups (kubernetes/pkg/apis/events/v1/conversion.go). Its Codec is that of the core group.
type eventCodec struct{ runtime.Codec }

func (c eventCodec) Encode(obj runtime.Object, w io.Writer) error {
	e := obj.(*eventsv1.Event)
	return c.Codec.Encode(&corev1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, Series: (*corev1.EventSeries)(e.Series),
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance, Action: e.Action, Reason: e.Reason,
		InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type, Source: e.DeprecatedSource,
		FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
	}, w)
}

func (c eventCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var e corev1.Event
	if _, kind, err := c.Codec.Decode(data, defaults, &e); err != nil {
		return nil, kind, err
	}
	out, ok := into.(*eventsv1.Event)
	if !ok { // a watch has no object to decode into
		out = &eventsv1.Event{}
	}
	*out = eventsv1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, Series: (*eventsv1.EventSeries)(e.Series),
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance, Action: e.Action, Reason: e.Reason,
		Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type, DeprecatedSource: e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp, DeprecatedCount: e.Count,
	}
	kind := eventsv1.SchemeGroupVersion.WithKind("Event")
	return out, &kind, nil
}
