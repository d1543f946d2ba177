package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// TestTroubleshooting breaks what each section of the page is about, sees that kubectl prints
// what the page says, applies the fix, and sees it work.
func TestTroubleshooting(t *testing.T) {
	tier.VerifyOnly(t, "replays a page")
	p := mdtest.Read(t, "troubleshooting.md")
	scenarios := map[string]func(*stage){
		"The conversion webhook is down": down,
		"The Service has no endpoints": fixed(
			func(s *stage) { s.operator.endpoints(s, s.cluster) },
			func(s *stage) { s.operator.endpoints(s, s.cluster, s.operator.port()) }),
		"The Service does not exist": fixed(clientConfigIs("service", service("backup-webhook")), clientConfigIs("service", service("backup-operator"))),
		"The path is not served":     fixed(converting(func(*stage) http.Handler { return nil }), converts),
		"The CA bundle is wrong": fixed(
			clientConfigIs("caBundle", func(s *stage) any { return webhooktest.NewCA(s, "backup-operator-ca").PEM() }),
			clientConfigIs("caBundle", func(s *stage) any { return s.operator.ca.PEM() })),
		"The CA bundle is not a certificate": placeholderBundle,
		"The certificate has expired": fixed(
			func(s *stage) { s.operator.certify(s, -time.Hour, operatorHost) },
			func(s *stage) { s.operator.certify(s, time.Hour, operatorHost) }),
		"The certificate has the wrong name":                  wrongName,
		"The conversion webhook is too slow":                  fixed(converting(func(s *stage) http.Handler { return slow(converter(s)) }), converts),
		"The conversion webhook changes metadata":             fixed(returning(replaced(`"namespace":"default"`, `"namespace":""`)), converts),
		"The conversion webhook returns another object":       fixed(returning(replaced(`"name":"nightly"`, `"name":"weekly"`)), converts),
		"The conversion webhook loses an object":              fixed(returning(func(all []json.RawMessage) []json.RawMessage { return all[1:] }), converts),
		"One object cannot be converted":                      oneBadObject,
		"A namespace is stuck in deletion":                    stuckNamespace,
		"A version cannot be removed":                         stuckVersion,
		"A manifest uses a removed version":                   goneVersion,
		"managedFields refer to a removed version":            goneManager,
		"Server-side apply reports an undeclared field":       undeclared,
		"Server-side apply refuses a null":                    refusedNull,
		"A short name ignores the version":                    shortName,
		"The schema is not structural":                        notStructural,
		"Unknown field":                                       unknownField,
		"A field is dropped without an error":                 prunedField,
		"The status cannot be written":                        noStatus,
		"The schema accepts a quantity that Go cannot decode": longQuantity,
		"The admission webhook is too slow":                   slowAdmission,
		"A webhook blocks its own operator":                   ownOperator,
		"Defaults cause permanent differences":                defaultsLoop,
		"The generation grows without a change":               unknownToSchema,
		"A webhook changes values from Git":                   rewritten,
		"The order of a list changes":                         reordered,
		"Git and the operator write the same field":           twoOwners,
	}
	for title := range scenarios {
		p.Section(t, title)
	}
	var slow, fast []mdtest.Section
	for _, section := range p.Sections {
		switch {
		case scenarios[section.Title] == nil:
			if len(section.BlocksOf("console")) > 0 {
				t.Errorf("nothing proves section %q", section.Title)
			}
		case slices.Contains(sectionsThatWait, section.Title):
			slow = append(slow, section)
		default:
			fast = append(fast, section)
		}
	}
	updates := &updates{}
	t.Cleanup(func() { rewrite(t, p, updates.replacements) })
	for name, sections := range map[string][]mdtest.Section{"slow": slow, "fast": fast} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := newStages(t, p, updates)
			for _, section := range sections {
				t.Run(section.Title, func(t *testing.T) {
					s := set(t, section)
					scenarios[section.Title](s)
					if blocks := len(section.BlocksOf("console")); s.next != blocks {
						t.Errorf("only %d of %d blocks were played", s.next, blocks)
					}
				})
			}
		})
	}
}

// sectionsThatWait are those that wait for timeouts and retries of the API server and of kubectl.
// A control plane of their own lets the others go on meanwhile.
var sectionsThatWait = []string{"The conversion webhook is down", "The conversion webhook is too slow", "One object cannot be converted"}

func down(s *stage) {
	s.apply("nightly.yaml")
	s.operator.endpoints(s, s.cluster, closedPort(s))
	// A definition that has changed gets a new cache, which cannot be filled now.
	s.change(`{"spec": {"names": {"categories": ["shop"]}}}`)
	s.shows()
	s.quotes("kubectl get --raw /apis/example.com/v1beta1/backups", "storage is (re)initializing: failed to list <unspecified>:")
	metrics, err := s.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.Context())
	expect.NoError(s, err)
	if !regexp.MustCompile(`(?m)^apiserver_conversion_webhook_request_total\{.*result="failure".*\} [1-9]`).Match(metrics) {
		s.Error("the metric that the page names counts nothing")
	}
	s.unsafeDeletion()
	s.operator.endpoints(s, s.cluster, s.operator.port())
	s.works()
}

// unsafeDeletion checks that the delete option of which the page warns would delete an object
// that the webhook cannot convert now.
func (s *stage) unsafeDeletion() {
	s.Helper()
	options := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}
	remove := func(version string) error {
		client := dynamic.NewForConfigOrDie(s.Config()).Resource(backups.GroupResource().WithVersion(version)).Namespace("default")
		return client.Delete(s.Context(), "nightly", options)
	}
	expect.NoError(s, remove("v1beta1"))
	if err := remove("v1"); !apierrors.IsConflict(err) {
		s.Errorf("v1, which is stored: got %v, want a conflict", err)
	}
}

// fixed is a scenario in which something breaks, the section shows what happens then, and its fix works.
func fixed(breaks, fix func(*stage)) func(*stage) {
	return func(s *stage) {
		s.apply("nightly.yaml")
		breaks(s)
		s.shows()
		fix(s)
		s.works()
	}
}

// converts has the operator convert as it should.
func converts(s *stage) { s.operator.serve("/convert", converter(s)) }

// converting returns a fault of the operator: it serves something else than its converter.
func converting(h func(s *stage) http.Handler) func(*stage) {
	return func(s *stage) { s.operator.serve("/convert", h(s)) }
}

// returning returns a fault of the operator: it changes the objects that it has converted.
func returning(change func([]json.RawMessage) []json.RawMessage) func(*stage) {
	return converting(func(s *stage) http.Handler { return answering(s, converter(s), change) })
}

// replaced returns a change of a text in each object.
func replaced(old, text string) func([]json.RawMessage) []json.RawMessage {
	return func(all []json.RawMessage) []json.RawMessage {
		for i := range all {
			all[i] = bytes.ReplaceAll(all[i], []byte(old), []byte(text))
		}
		return all
	}
}

// clientConfigIs returns a change of a field of the clientConfig in the definition.
func clientConfigIs(field string, value func(s *stage) any) func(*stage) {
	return func(s *stage) {
		s.patch(s, s.base.Name, map[string]any{"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{
			"clientConfig": map[string]any{field: value(s)},
		}}}})
	}
}

// service is the value of the field for a Service of a name.
func service(name string) func(*stage) any {
	return func(*stage) any { return map[string]any{"name": name} }
}

func placeholderBundle(s *stage) {
	s.shows()
	s.change(`{"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": null}}}}}`)
}

func wrongName(s *stage) {
	s.apply("nightly.yaml")
	s.operator.certify(s, time.Hour, "backup-operator", "localhost")
	s.shows()
	s.operator.certify(s, time.Hour)
	s.quotes("kubectl get backup.v1beta1.example.com nightly", "x509: certificate relies on legacy Common Name field, use SANs instead")
	s.operator.certify(s, time.Hour, operatorHost)
	s.works()
}

// slow answers as another handler would, when the client has lost patience.
func slow(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		<-r.Context().Done()
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// answering has a handler's answer changed: its list of converted objects.
func answering(t testing.TB, h http.Handler, change func([]json.RawMessage) []json.RawMessage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &recorder{header: http.Header{}}
		h.ServeHTTP(answer, r)
		var review map[string]any
		if err := json.Unmarshal(answer.body.Bytes(), &review); err != nil {
			t.Errorf("%v: %s", err, answer.body.Bytes())
			return
		}
		response := review["response"].(map[string]any)
		var objects []json.RawMessage
		for _, o := range response["convertedObjects"].([]any) {
			text, err := json.Marshal(o)
			if err != nil {
				t.Error(err)
			}
			objects = append(objects, text)
		}
		response["convertedObjects"] = change(objects)
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Log(err) // it has gone
		}
	})
}

type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorder) WriteHeader(int)             {}

func oneBadObject(s *stage) {
	s.apply("nightly.yaml")
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(backups).Namespace("default")
	_, err := client.Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Backup", "metadata": map[string]any{"name": "broken"}, "spec": map[string]any{"bucket": "shop"},
	}}, metav1.CreateOptions{})
	expect.NoError(s, err)
	s.shows()
	_, err = dynamic.NewForConfigOrDie(s.Config()).Resource(backups.GroupResource().WithVersion("v1beta1")).List(s.Context(), metav1.ListOptions{Limit: 500})
	if status := (&apierrors.StatusError{}); !errors.As(err, &status) || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) != 1 ||
		status.ErrStatus.Details.Causes[0].Field != "/registry/example.com/backups/default/broken" {
		s.Errorf("got %#v, want that details.causes names the key of the object", err)
	}
	_, err = client.Patch(s.Context(), "broken", types.MergePatchType, []byte(`{"spec": {"path": "fixed"}}`), metav1.PatchOptions{})
	expect.NoError(s, err)
	s.works()
}

func stuckNamespace(s *stage) {
	_, err := s.CoreV1().Namespaces().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	expect.NoError(s, err)
	s.store("v1beta1")
	if out := s.run(s, s.dir, "kubectl apply --namespace=team -f nightly.yaml"); !strings.Contains(out, "created") {
		s.Fatal(out)
	}
	s.operator.endpoints(s, s.cluster, closedPort(s))
	s.store("v1")
	expect.NoError(s, s.CoreV1().Namespaces().Delete(s.Context(), "team", metav1.DeleteOptions{}))
	s.shows()
	s.shows()
	// The work of the namespace controller, which a control plane for tests does not have.
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(backups).Namespace("team")
	expect.Eventually(s, func() error { // the API server may still convert for a moment
		if err := client.DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return err
		}
		list, err := client.List(s.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d objects are left", len(list.Items))
		}
		return err
	})
	namespace, err := s.CoreV1().Namespaces().Get(s.Context(), "team", metav1.GetOptions{})
	expect.NoError(s, err)
	namespace.Spec.Finalizers = nil
	_, err = s.CoreV1().Namespaces().Finalize(s.Context(), namespace, metav1.UpdateOptions{})
	expect.NoError(s, err)
}

// store changes the storage version, and waits until the API server stores in it.
func (s *stage) store(version string) {
	s.Helper()
	versions := slices.Clone(s.base.Spec.Versions)
	for i := range versions {
		versions[i].Storage = versions[i].Name == version
	}
	s.setVersions(versions)
	// A dry run encodes the object in the storage version
	// (apiserver/pkg/registry/generic/registry/dryrun.go), and the converter refuses this one.
	expect.Eventually(s, func() error { return s.tryCreate(version, unconverted, nil) })
}

func (s *stage) setVersions(versions []apiextensionsv1.CustomResourceDefinitionVersion) {
	s.Helper()
	s.patch(s, s.base.Name, map[string]any{"spec": map[string]any{"versions": versions}})
}

func stuckVersion(s *stage) {
	s.store("v1beta1")
	s.apply("nightly.yaml")
	s.store("v1")
	key := "example.com/backups/default/nightly"
	if stored := s.stored(s, key); !strings.Contains(stored, `"example.com/v1beta1"`) {
		s.Fatalf("it is not stored in the old version: %s", stored)
	}
	s.shows()
	s.shows()
	if stored := s.stored(s, key); !strings.Contains(stored, `"apiVersion":"example.com/v1","kind"`) {
		s.Errorf("it is still stored as %s", stored)
	}
	s.setVersions(s.base.Spec.Versions[1:])
}

func goneVersion(s *stage) {
	s.writeOld("nightly", "old.yaml")
	s.setVersions(s.base.Spec.Versions[1:])
	s.shows()
	deprecated := slices.Clone(s.base.Spec.Versions)
	deprecated[0].Deprecated = true
	s.setVersions(deprecated)
	s.quotes("kubectl apply -f old.yaml", "Warning: example.com/v1beta1 Backup is deprecated; use example.com/v1 Backup")
}

func shortName(s *stage) {
	s.apply("nightly.yaml")
	s.shows()
}

// writeOld writes the manifest of a backup in v1beta1.
func (s *stage) writeOld(name, file string) {
	s.Helper()
	text := fmt.Sprintf("apiVersion: example.com/v1beta1\nkind: Backup\nmetadata: {name: %s, namespace: default}\nspec: {target: shop/db}\n", name)
	expect.NoError(s, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600))
}

// applyOld applies a backup in v1beta1, as another manager.
func (s *stage) applyOld(name string) {
	s.Helper()
	s.writeOld(name, "old.yaml")
	if out := s.run(s, s.dir, "kubectl apply --server-side --field-manager=old-pipeline -f old.yaml"); !strings.Contains(out, "serverside-applied") {
		s.Fatal(out)
	}
}

func goneManager(s *stage) {
	s.applyOld("weekly")
	s.applyOld("nightly")
	s.setVersions(s.base.Spec.Versions[1:])
	s.shows()
	s.shows()
	s.shows()
	s.prints("kubectl apply --server-side -f nightly.yaml", "serverside-applied")

	// Other writes go through.
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(backups).Namespace("default")
	b, err := client.Patch(s.Context(), "weekly", types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{})
	expect.NoError(s, err)
	if len(b.GetManagedFields()) == 0 {
		s.Error("the managedFields are gone")
	}
}

func undeclared(s *stage) {
	s.applyOld("nightly")
	s.addsToSpec("v1beta1", `"encrypted":true`)
	s.shows()
	s.operator.serve("/convert", converter(s))
	s.prints("kubectl apply --server-side -f nightly.yaml", "serverside-applied")
}

func refusedNull(s *stage) {
	s.applyOld("nightly")
	s.addsToSpec("v1", `"hooks":null`)
	s.shows()
	s.prints("kubectl label backup nightly a=b", "labeled")
	s.prints("kubectl apply --server-side --field-manager=old-pipeline -f old.yaml", "serverside-applied")
	s.operator.serve("/convert", converter(s))
	s.prints("kubectl apply --server-side --field-manager=old-pipeline -f nightly.yaml", "serverside-applied")
}

// addsToSpec makes the conversion to a version add a field.
func (s *stage) addsToSpec(version, field string) {
	s.operator.serve("/convert", answering(s, converter(s), func(all []json.RawMessage) []json.RawMessage {
		for i := range all {
			if bytes.Contains(all[i], []byte(`"example.com/`+version+`","kind"`)) {
				all[i] = bytes.Replace(all[i], []byte(`"spec":{`), []byte(`"spec":{`+field+`,`), 1)
			}
		}
		return all
	}))
}

func notStructural(s *stage) {
	s.shows()
	s.quotes(`kubectl patch crd backups.example.com --type=json -p '[{"op": "add", "path": "/spec/versions/1/schema/openAPIV3Schema/properties/spec/anyOf", `+
		`"value": [{"properties": {"path": {"type": "string"}}}]}]'`, "Forbidden: must be empty to be structural")
}

func unknownField(s *stage) { s.shows() }

func noStatus(s *stage) {
	s.apply("nightly.yaml")
	s.shows()
	versions := slices.Clone(s.base.Spec.Versions)
	versions[1].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	s.setVersions(versions)
	patch := s.page.Section(s, "The status cannot be written").BlocksOf("console")[0].Commands()[0].Line
	expect.Eventually(s, func() error { // the API server may still serve the earlier definition for a moment
		if out := s.command(patch); !strings.Contains(out, "patched") {
			return errors.New(out)
		}
		return nil
	})
}

// The schema that controller-gen makes of the markers rejects what Go cannot decode, and the field
// without markers does not.
func longQuantity(s *stage) {
	generate := exec.CommandContext(s.Context(), "go", "tool", "-modfile=../hack/tools/go.mod", "controller-gen", "crd", "paths=./testdata/caches", "output:crd:stdout")
	generate.Stderr = os.Stderr
	text, err := generate.Output()
	expect.NoError(s, err)
	crd := s.define(s, string(text))
	defer func() {
		expect.NoError(s, s.definitions.ApiextensionsV1().CustomResourceDefinitions().Delete(s.Context(), crd.Name, metav1.DeleteOptions{}))
	}()
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "caches"}).Namespace("default")
	for text, accepted := range map[string]bool{"1e1.5": false, "1e-7620000": false, "1e9": true, "100Mi": true, ".5": true, "-1.e+2": true} {
		for _, field := range []string{"plain", "memory"} {
			spec := map[string]any{"memory": "1", "timeout": "1m"}
			spec[field] = text
			cache := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Cache", "metadata": map[string]any{"name": "a"}, "spec": spec}}
			_, err := client.Create(s.Context(), cache, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if accepted := accepted || field == "plain"; (err == nil) != accepted {
				s.Errorf("%s: %s: %v, accepted should be %t", field, text, err, accepted)
			}
		}
		if _, err := resource.ParseQuantity(text); (err == nil) != (text != "1e1.5") {
			s.Errorf("%s: %v", text, err)
		}
	}
}

func prunedField(s *stage) {
	s.command(s.page.Section(s, "Unknown field").BlocksOf("console")[0].Commands()[0].Line)
	s.shows()
	s.quotes("kubectl apply --validate=warn -f typo.yaml", `Warning: unknown field "spec.keeep"`)
	s.shows()
}

// clientConfig leads to a path of the operator.
func (o *operator) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: operatorNamespace, Name: operatorService, Path: &path},
		CABundle: o.ca.PEM(),
	}
}

func rules(group, version, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}}
}

const (
	create       = admissionregistrationv1.Create
	updated      = admissionregistrationv1.Update
	noneOfEffect = admissionregistrationv1.SideEffectClassNone
)

// validating registers a validating webhook of the operator.
func (s *stage) validating(path string, timeout int32, rules []admissionregistrationv1.RuleWithOperations) {
	s.Helper()
	_, err := s.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(s.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "backup-operator"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.backups.example.com", ClientConfig: s.operator.clientConfig(path), Rules: rules,
			SideEffects: new(noneOfEffect), TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	expect.NoError(s, err)
}

// mutating registers a mutating webhook of the operator, for backups of v1, and waits until the
// API server calls it.
func (s *stage) mutating(path string) {
	s.Helper()
	_, err := s.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(s.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "backup-operator"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "default.backups.example.com", ClientConfig: s.operator.clientConfig(path), Rules: rules("example.com", "v1", "backups", create, updated),
			SideEffects: new(noneOfEffect), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	expect.NoError(s, err)
	before := s.operator.called(path)
	expect.Eventually(s, func() error {
		err := s.tryCreate("v1", "example", map[string]any{"bucket": "shop", "path": "db"})
		if err == nil && s.operator.called(path) == before {
			err = fmt.Errorf("%s has not been called", path)
		}
		return err
	})
}

var kindV1 = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Backup"}

func allowing() http.Handler {
	return admission.NewHandler(runtime.NewScheme(), admission.Validate(func(context.Context, *unstructured.Unstructured) (field.ErrorList, error) {
		return nil, nil
	}, admission.ForKind(kindV1)))
}

func slowAdmission(s *stage) {
	s.operator.serve("/validate", slow(allowing()))
	s.validating("/validate", 1, rules("example.com", "v1", "backups", create, updated))
	s.shows()
	s.operator.serve("/validate", allowing())
	s.apply("nightly.yaml")
}

func ownOperator(s *stage) {
	s.operator.endpoints(s, s.cluster)
	_, err := s.CoreV1().ServiceAccounts(operatorNamespace).Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	expect.NoError(s, err)
	s.validating("/validate", 10, rules("", "v1", "pods", create))
	s.shows()
	s.shows()
	s.prints("kubectl run backup-operator-0 --namespace=backup-system --image=backup-operator", "pod/backup-operator-0 created")
	expect.NoError(s, s.CoreV1().Pods(operatorNamespace).Delete(s.Context(), "backup-operator-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
}

// mutation is a webhook that changes the spec of backups.
func mutation(change func(spec map[string]any)) http.Handler {
	return admission.NewHandler(runtime.NewScheme(), admission.Mutate(func(_ context.Context, b *unstructured.Unstructured) error {
		change(b.Object["spec"].(map[string]any))
		return nil
	}, admission.ForKind(kindV1)))
}

// field gives the spec of all versions a field.
func (s *stage) field(name string, schema apiextensionsv1.JSONSchemaProps) {
	s.Helper()
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	for _, v := range s.base.Spec.Versions {
		v := *v.DeepCopy()
		v.Schema.OpenAPIV3Schema.Properties["spec"].Properties[name] = schema
		versions = append(versions, v)
	}
	s.setVersions(versions)
}

func defaultsLoop(s *stage) {
	s.field("copies", apiextensionsv1.JSONSchemaProps{
		Type: "array",
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"region": {Type: "string"},
				"class":  {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"cold"`)}},
			},
		}},
	})
	s.apply("nightly.yaml")
	s.shows()
}

// unknownToSchema has a webhook add a field that no schema has, until the schema has it.
func unknownToSchema(s *stage) {
	s.operator.serve("/admit", mutation(func(spec map[string]any) { spec["checkedBy"] = "backup-operator" }))
	s.mutating("/admit")
	s.shows()
	s.field("checkedBy", apiextensionsv1.JSONSchemaProps{Type: "string"})
	s.prints("kubectl apply --server-side -f nightly.yaml", "serverside-applied")
	expect.Eventually(s, func() error {
		if diff := s.command("kubectl diff --server-side -f nightly.yaml"); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func rewritten(s *stage) {
	s.operator.serve("/admit", mutation(func(spec map[string]any) { spec["path"] = strings.TrimRight(spec["path"].(string), "/") }))
	s.mutating("/admit")
	s.apply("nightly.yaml")
	s.shows()
	expect.NoError(s, s.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(s.Context(), "backup-operator", metav1.DeleteOptions{}))
	s.field("path", apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: "[^/]$"})
	s.prints("kubectl apply -f slash.yaml", `spec.path in body should match '[^/]$'`)
}

func reordered(s *stage) {
	s.operator.serve("/admit", mutation(func(spec map[string]any) {
		if hooks, is := spec["hooks"].([]any); is {
			slices.SortFunc(hooks, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}))
	s.mutating("/admit")
	s.shows()
	s.operator.serve("/admit", mutation(func(map[string]any) {}))
	s.prints("kubectl apply --server-side -f nightly.yaml", "serverside-applied")
	s.prints("kubectl get backup nightly -o jsonpath='{.spec.hooks}'", `["stop","start"]`)
}

func twoOwners(s *stage) {
	if out := s.run(s, s.dir, "kubectl apply --server-side -f nightly.yaml"); !strings.Contains(out, "serverside-applied") {
		s.Fatal(out)
	}
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(backups).Namespace("default")
	b, err := client.Get(s.Context(), "nightly", metav1.GetOptions{})
	expect.NoError(s, err)
	expect.NoError(s, unstructured.SetNestedField(b.Object, int64(14), "spec", "keep"))
	_, err = client.Update(s.Context(), b, metav1.UpdateOptions{FieldManager: "backup-operator"})
	expect.NoError(s, err)
	s.shows()
	s.prints("kubectl apply --server-side --force-conflicts -f nightly.yaml", "serverside-applied")
}
