package rehearse_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/rehearse"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// cluster is a real API server whose Jobs are upgraded.
type cluster struct {
	*testing.T
	config *rest.Config
}

func (c cluster) jobs(version string) dynamic.ResourceInterface {
	gvr := runtimeschema.GroupVersionResource{Group: "example.com", Version: version, Resource: "jobs"}
	return dynamic.NewForConfigOrDie(c.config).Resource(gvr).Namespace("default")
}

// install replaces the definition, and waits until the server serves its versions and knows a
// field of the schema in v1, or no longer does.
func (c cluster) install(d *schema.Definition, config apiextensionsv1.WebhookClientConfig, known bool) {
	c.Helper()
	definitions := apiextensionsclient.NewForConfigOrDie(c.config).ApiextensionsV1().CustomResourceDefinitions()
	crd := d.CustomResourceDefinition()
	if crd.Spec.Conversion.Webhook != nil {
		crd.Spec.Conversion.Webhook.ClientConfig = &config
	}
	var err error
	if old, notFound := definitions.Get(c.Context(), crd.Name, metav1.GetOptions{}); notFound != nil {
		_, err = definitions.Create(c.Context(), crd, metav1.CreateOptions{})
	} else {
		old.Spec = crd.Spec
		_, err = definitions.Update(c.Context(), old, metav1.UpdateOptions{})
	}
	expect.NoError(c, err)
	probe := testobj.Parse(c, job("probe", "v1", `{"b":"x"}`))
	probe.SetUID("")
	expect.Eventually(c, func() error {
		got, err := c.jobs("v1").Create(c.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			if _, found, _ := unstructured.NestedString(got.Object, "spec", "b"); found != known {
				err = fmt.Errorf("spec.b is known: %t, want %t", found, known)
			}
		}
		for _, v := range d.Versions() {
			if _, notServed := c.jobs(v).Get(c.Context(), "good", metav1.GetOptions{}); notServed != nil && strings.Contains(notServed.Error(), "could not find the requested resource") {
				err = notServed
			}
		}
		return err
	})
}

// observe reads and writes an object in each version, as a client does, and returns findings as a
// rehearsal has them: step, effect, version and path, and the text of an error.
func (c cluster) observe(step rehearse.Step, name string, versions []string, before *unstructured.Unstructured) (seen []string) {
	c.Helper()
	for _, v := range versions {
		got, err := c.jobs(v).Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			// The storage of newer servers puts the key of the object before the error.
			text := err.Error()
			if _, inner, ok := strings.Cut(text, "object not decodable revision="); ok {
				_, text, _ = strings.Cut(inner, ": ")
			}
			seen = append(seen, fmt.Sprint(step, " unreadable ", v, "  ", text))
			continue
		}
		if v == before.GroupVersionKind().Version {
			was, _, _ := unstructured.NestedMap(before.Object, "spec")
			is, _, _ := unstructured.NestedMap(got.Object, "spec")
			for field := range was {
				if is[field] == nil {
					seen = append(seen, fmt.Sprint(step, " removed ", v, " spec.", field, " "))
				}
			}
		}
		if step == rehearse.Rollback {
			continue
		}
		if _, err := c.jobs(v).Update(c.Context(), got, metav1.UpdateOptions{}); err != nil {
			for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
				seen = append(seen, fmt.Sprint("update refused ", v, " ", cause.Field, " ", cause.Message))
			}
		}
	}
	return seen
}

// The server does to each object what the rehearsal has predicted.
func TestRun_PredictsARealUpgrade(t *testing.T) {
	c := cluster{t, rest.CopyConfig(controlplane.Shared(t).Config())}
	old := definition(t, "v1*: a, b, owner")
	now := definition(t, "v1*: a, owner", "v2: {type: object, required: [owner], properties: {a: {type: string}, owner: {type: string}, size: {type: string, default: m}}}")
	convert := webhook(func(name, to string, spec map[string]any) error {
		if spec["a"] == "" {
			return fmt.Errorf("Job default/%s: spec.a: Invalid value: %q: must not be empty", name, "")
		}
		return nil
	})
	address, ca := webhooktest.Serve(t, convert)
	c.install(old, apiextensionsv1.WebhookClientConfig{}, true)
	stored := map[string]*unstructured.Unstructured{}
	for name, spec := range map[string]string{
		"good": `{"a":"1","owner":"o"}`, "nobody": `{"a":"1"}`, "empty": `{"a":"","owner":"o"}`, "more": `{"a":"1","b":"2","owner":"o"}`,
	} {
		u := testobj.Parse(t, job(name, "v1", spec))
		u.SetUID("")
		out, err := c.jobs("v1").Create(t.Context(), u, metav1.CreateOptions{})
		expect.NoError(t, err)
		stored[name] = out
	}

	predicted := map[string][]string{}
	for name, u := range stored {
		text, err := json.Marshal(u)
		expect.NoError(t, err)
		report, err := rehearse.Run(t.Context(), release(nil, old), release(convert, now), objects(string(text)))
		expect.NoError(t, err)
		for _, f := range report.Findings {
			message := strings.TrimPrefix(f.Example.Error, f.Path+": ")
			predicted[name] = append(predicted[name], fmt.Sprint(f.Step, " ", f.Effect, " ", f.Version, " ", f.Path, " ", message))
		}
		slices.Sort(predicted[name])
	}
	if len(predicted["nobody"])+len(predicted["empty"])+len(predicted["more"]) < 4 || predicted["good"] != nil {
		t.Errorf("the rehearsal predicts %v, want something for all but one", predicted)
	}

	c.install(now, apiextensionsv1.WebhookClientConfig{URL: &address, CABundle: ca}, false)
	seen := map[string][]string{}
	for name, u := range stored {
		seen[name] = c.observe(rehearse.Upgrade, name, []string{"v1", "v2"}, u)
	}
	if _, err := c.jobs("v2").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("one unreadable object fails no list")
	}
	c.install(old, apiextensionsv1.WebhookClientConfig{}, true)
	for name, u := range stored {
		seen[name] = append(seen[name], c.observe(rehearse.Rollback, name, []string{"v1"}, u)...)
		slices.Sort(seen[name])
		if diff := cmp.Diff(seen[name], predicted[name]); diff != "" {
			t.Errorf("%s (-server +rehearsal):\n%s", name, diff)
		}
	}
}
