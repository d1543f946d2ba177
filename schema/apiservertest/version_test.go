package apiservertest_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

const rangesYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ranges.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: ranges, kind: Range}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "lists.range(3).size() == 3"}]
`

const rangesPolicyYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ranges}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "lists.range(3).size() == 3"}]
`

// The expectations are from the modules of each release: environment.DefaultCompatibilityVersion,
// EffectiveVersion.Info and the prerelease-lifecycle of the types.
func TestEmulateVersion(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]struct {
		minCompatibility, gitVersion        string
		ranges, mutatingPolicies, migration bool
	}{
		"1.34": {minCompatibility: "33", gitVersion: "v1.34.0"},
		"1.35": {minCompatibility: "34", gitVersion: "v1.35.0", ranges: true},
		"1.36": {minCompatibility: "35", gitVersion: "v1.36.0", ranges: true, mutatingPolicies: true},
		"1.37": {minCompatibility: "36", gitVersion: "v1.37.0", ranges: true, mutatingPolicies: true, migration: true},
	} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := apiservertest.Start(t, apiservertest.EmulateVersion(release))
			kube := kubernetes.NewForConfigOrDie(s.Config())
			info, err := kube.Discovery().ServerVersion()
			expect.NoError(t, err)
			if got := info.Major + "." + info.Minor; got != release || info.EmulationMinor != info.Minor || info.MinCompatibilityMinor != want.minCompatibility || info.GitVersion != want.gitVersion {
				t.Errorf("the version is %+v", info)
			}

			crd := testobj.As[apiextensionsv1.CustomResourceDefinition](t, rangesYAML)
			definitions := apiextensionsclient.NewForConfigOrDie(s.Config()).ApiextensionsV1().CustomResourceDefinitions()
			_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
			accepts(t, err, want.ranges, "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value")
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].XValidations[0].Rule = "true"
			if !want.ranges {
				_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
				expect.NoError(t, err)
			}

			policy := testobj.As[admissionregistrationv1.ValidatingAdmissionPolicy](t, rangesPolicyYAML)
			_, err = kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
			accepts(t, err, want.ranges, "spec.validations[0].expression: Invalid value")
			_, err = kube.AdmissionregistrationV1().MutatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
			if err != nil && !apierrors.IsNotFound(err) || (err == nil) != want.mutatingPolicies {
				t.Errorf("MutatingAdmissionPolicies: %v", err)
			}
			_, err = kube.StoragemigrationV1().StorageVersionMigrations().List(t.Context(), metav1.ListOptions{})
			if err != nil && !apierrors.IsNotFound(err) || (err == nil) != want.migration {
				t.Errorf("StorageVersionMigrations: %v", err)
			}
		})
	}
}

func accepts(t *testing.T, err error, ok bool, refusal string) {
	t.Helper()
	if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), refusal) {
		t.Errorf("got %v, want an error: %t, with %q", err, !ok, refusal)
	}
}

func TestEmulateVersion_Refused(t *testing.T) {
	t.Parallel()
	mutating := strings.NewReplacer("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "validations: [{expression: \"lists.range(3).size() == 3\"}]", "mutations: []").Replace(rangesPolicyYAML)
	for name, test := range map[string]struct {
		release string
		objects string
		want    string
	}{
		"too old":      {"1.33", "", `apiservertest: EmulateVersion: got "1.33", expected a release from 1.34 to 1.37`},
		"too new":      {"1.38", "", `apiservertest: EmulateVersion: got "1.38", expected a release from 1.34 to 1.37`},
		"no version":   {"newest", "", `apiservertest: EmulateVersion: got "newest", expected a release from 1.34 to 1.37`},
		"a rule":       {"1.34", rangesYAML, "apiservertest: CustomResourceDefinition ranges.stable.example.com: CustomResourceDefinition.apiextensions.k8s.io \"ranges.stable.example.com\" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {\"rule\":\"lists.range(3).size() == 3\"}: compilation failed"},
		"a policy":     {"1.34", rangesPolicyYAML, "apiservertest: ValidatingAdmissionPolicy ranges: ValidatingAdmissionPolicy.admissionregistration.k8s.io \"ranges\" is invalid: spec.validations[0].expression: Invalid value: \"lists.range(3).size() == 3\": compilation failed"},
		"a later kind": {"1.35", mutating, `apiservertest: MutatingAdmissionPolicy ranges: no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := apiservertest.New(t.Context(), apiservertest.EmulateVersion(test.release), apiservertest.Manifests([]byte(test.objects)))
			expect.ErrorContains(t, err, test.want)
		})
	}
}
