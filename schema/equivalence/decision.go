package equivalence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/audit"

	"github.com/crdkit/crdkit/internal/inprocess"
	"github.com/crdkit/crdkit/schema"
)

// counters counts what the rules of a release decide.
type counters struct {
	mu       sync.Mutex
	rules    map[string]*ruleCounter // by group, kind and version
	policies map[string]*policyProbe // by the name of the probe
	webhooks map[string]*Decision    // by the first element of their paths
}

func (s *side) decision(format string, args ...any) *Decision {
	d := &Decision{Release: s.name, Name: fmt.Sprintf(format, args...)}
	s.decisions = append(s.decisions, d)
	return d
}

// ruleCounter counts the rules of a version. To tell them apart, each rule has its number as its message. A rule allowed
// something where its negation fails.
type ruleCounter struct {
	rules, negations *schema.Version
	decisions        []*Decision
}

// countRules prepares to count the rules of a definition.
func (s *side) countRules(d *schema.Definition) error {
	decisions := map[string][]*Decision{}
	variant := func(negate bool) (*schema.Definition, error) {
		crd := d.CustomResourceDefinition()
		for i := range crd.Spec.Versions {
			v, n := &crd.Spec.Versions[i], 0
			if v.Schema == nil || !v.Served {
				continue
			}
			eachSchema(v.Schema.OpenAPIV3Schema, "", func(path string, in *apiextensionsv1.JSONSchemaProps) {
				if negate {
					in.Default = nil // which the negations may refuse
				}
				for i := range in.XValidations {
					rule := &in.XValidations[i]
					if !negate {
						decisions[v.Name] = append(decisions[v.Name], s.decision("%s %s: %s: %s", d.GroupKind(), v.Name, cmp.Or(strings.TrimPrefix(path, "."), "self"), strings.Join(strings.Fields(rule.Rule), " ")))
					} else {
						rule.Rule = "!(" + rule.Rule + "\n)"
					}
					rule.Message, rule.MessageExpression, rule.FieldPath, rule.Reason = strconv.Itoa(n), "", "", nil
					n++
				}
			})
		}
		return schema.New(crd)
	}
	rules, err := variant(false)
	if err != nil {
		return err
	}
	negations, err := variant(true)
	if err != nil {
		return err
	}
	if s.counters.rules == nil {
		s.counters.rules = map[string]*ruleCounter{}
	}
	for name, all := range decisions {
		s.counters.rules[d.GroupKind().WithVersion(name).String()] = &ruleCounter{rules.Version(name), negations.Version(name), all}
	}
	return nil
}

// eachSchema visits a schema and those in it in the order of their paths.
func eachSchema(s *apiextensionsv1.JSONSchemaProps, path string, visit func(path string, s *apiextensionsv1.JSONSchemaProps)) {
	if s == nil {
		return
	}
	visit(path, s)
	for _, name := range sorted(s.Properties) {
		p := s.Properties[name]
		eachSchema(&p, path+"."+name, visit)
		s.Properties[name] = p
	}
	if s.Items != nil {
		eachSchema(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil {
		eachSchema(s.AdditionalProperties.Schema, path+"[*]", visit)
	}
}

// countRulesOf counts what the rules say about a write. Mutations of a denied request are not known, so the rules get its
// object as the client sent it.
func (s *side) countRulesOf(ctx context.Context, w write, r response) {
	c := s.counters.rules[w.kind.gvk.String()]
	if c == nil || w.object == nil {
		return
	}
	object := w.object
	if r.Allowed {
		object = r.object
	}
	decode := func(object map[string]any) map[string]any {
		object = runtime.DeepCopyJSON(object)
		c.rules.Prune(object)
		c.rules.Default(object)
		return object
	}
	errs := func(v *schema.Version) field.ErrorList {
		switch object := decode(object); w.op {
		case Create:
			return v.Validate(ctx, object)
		case UpdateStatus:
			return v.ValidateStatusUpdate(ctx, object, decode(w.old))
		default:
			return v.ValidateUpdate(ctx, object, decode(w.old))
		}
	}
	decided := func(v *schema.Version) (all []*Decision) {
		for _, err := range errs(v) {
			if n, e := strconv.Atoi(err.Detail); e == nil && n < len(c.decisions) && !slices.Contains(all, c.decisions[n]) {
				all = append(all, c.decisions[n])
			}
		}
		return all
	}
	var denied []*Decision
	if !r.Allowed {
		denied = decided(c.rules)
	}
	allowed := decided(c.negations)
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	for _, d := range denied {
		d.Denied++
	}
	for _, d := range allowed {
		d.Allowed++
	}
}

// policyProbe is a policy that publishes what the validations of another one decide, in audit annotations.
type policyProbe struct {
	validations []*Decision
	denies      bool // a validation with an error
}

// probes returns policies and bindings that publish what those of the release decide, and deny nothing.
func (s *side) probes() (all []manifest) {
	s.counters.policies = map[string]*policyProbe{}
	names := map[string]string{}
	for _, m := range s.manifests {
		if m.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		u := m.DeepCopy()
		name := fmt.Sprintf("equivalence-%d", len(names))
		names[m.GetName()] = name
		failure, _, _ := unstructured.NestedString(u.Object, "spec", "failurePolicy")
		probe := &policyProbe{denies: failure != "Ignore"}
		annotations := []any{map[string]any{"key": "decides", "valueExpression": "'yes'"}}
		validations, _, _ := unstructured.NestedSlice(u.Object, "spec", "validations")
		for i, v := range validations {
			validation, _ := v.(map[string]any)
			expression, _, _ := unstructured.NestedString(validation, "expression")
			probe.validations = append(probe.validations, s.decision("%s %s: spec.validations[%d]: %s", m.GetKind(), m.GetName(), i, strings.Join(strings.Fields(expression), " ")))
			annotations = append(annotations, map[string]any{"key": strconv.Itoa(i), "valueExpression": "(" + expression + "\n) ? 'allows' : 'denies'"})
		}
		s.counters.policies[name] = probe
		spec, _, _ := unstructured.NestedMap(u.Object, "spec")
		delete(spec, "validations")
		spec["failurePolicy"], spec["auditAnnotations"] = "Ignore", annotations
		all = append(all, probeOf(m, "ValidatingAdmissionPolicy", name, spec))
	}
	for i, m := range s.manifests {
		policy, _, _ := unstructured.NestedString(m.Object, "spec", "policyName")
		name := names[policy]
		if name == "" || m.GetKind() != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		spec, _, _ := unstructured.NestedMap(m.DeepCopy().Object, "spec")
		spec["policyName"], spec["validationActions"] = name, []any{"Audit"}
		all = append(all, probeOf(m, "ValidatingAdmissionPolicyBinding", fmt.Sprintf("equivalence-%d", i), spec))
	}
	return all
}

func probeOf(m manifest, kind, name string, spec map[string]any) manifest {
	return manifest{m.file, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}}
}

// audited counts what the probes have published for a request.
func (c *counters) audited(event *audit.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range event.Annotations {
		name, decides := strings.CutSuffix(key, "/decides")
		probe := c.policies[name]
		if !decides || probe == nil {
			continue
		}
		for i, d := range probe.validations {
			value, evaluated := event.Annotations[name+"/"+strconv.Itoa(i)]
			if strings.Contains(value, "denies") || !evaluated && probe.denies {
				d.Denied++
			} else {
				d.Allowed++
			}
		}
	}
}

// countWebhooks prepares to count the webhooks of a release: each one gets a path of its own.
func (s *side) countWebhooks() {
	s.counters.webhooks = map[string]*Decision{}
	for _, m := range s.manifests {
		if !strings.HasSuffix(m.GetKind(), "WebhookConfiguration") {
			continue
		}
		webhooks, _, _ := unstructured.NestedSlice(m.Object, "webhooks")
		for _, w := range webhooks {
			webhook, _ := w.(map[string]any)
			name, _, _ := unstructured.NestedString(webhook, "name")
			first := fmt.Sprintf("equivalence-%d", len(s.counters.webhooks))
			s.counters.webhooks[first] = s.decision("%s %s: %s", m.GetKind(), m.GetName(), name)
			config, _ := webhook["clientConfig"].(map[string]any)
			if service, ok := config["service"].(map[string]any); ok {
				if at, _ := service["path"].(string); at == "" || at[0] == '/' { // the server refuses others
					service["path"] = "/" + first + cmp.Or(at, "/")
				}
			}
			if text, ok := config["url"].(string); ok {
				if u, err := url.Parse(text); err == nil {
					u.Path = "/" + first + cmp.Or(u.Path, "/")
					config["url"] = u.String()
				}
			}
		}
		if len(webhooks) > 0 {
			m.Object["webhooks"] = webhooks
		}
	}
}

// webhook returns a handler that counts what another one decides. An answer that the API server does not understand is an
// error, because it would be taken for a denial.
func (c *counters) webhook(h http.Handler, fail func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		d, h := c.webhooks[first], h
		if d != nil {
			h = http.StripPrefix("/"+first, h)
		}
		answer := inprocess.NewResponse()
		err = answer.Serve(h, r)
		if d != nil {
			var review admissionv1.AdmissionReview
			switch text := answer.Body.Bytes(); {
			case err != nil:
				err = errors.New("the handler panics")
			case answer.Code != http.StatusOK:
				err = fmt.Errorf("status %d: %s", answer.Code, text[:min(len(text), 500)])
			case json.Unmarshal(text, &review) != nil || review.Response == nil:
				err = fmt.Errorf("expected an AdmissionReview with a response, got %s", text[:min(len(text), 500)])
			}
			if err != nil {
				fail(fmt.Errorf("%s at %s: %w", d.Name, strings.TrimPrefix(r.URL.Path, "/"+first), err))
				panic(http.ErrAbortHandler)
			}
			c.mu.Lock()
			switch {
			case !review.Response.Allowed:
				d.Denied++
			case len(review.Response.Patch) > 0 && !slices.Equal(review.Response.Patch, []byte("[]")):
				d.Changed++
			default:
				d.Allowed++
			}
			c.mu.Unlock()
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}
