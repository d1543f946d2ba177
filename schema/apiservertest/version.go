package apiservertest

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// EmulateVersion lets the server emulate a release of Kubernetes, such as "1.35". The default is
// the release of the module k8s.io/apiserver; the three releases before it are also supported, and
// any other value is an error. Servers of several releases may run at the same time.
//
// These properties follow the release:
//
//   - The functions in new CEL expressions of CRDs, webhook configurations and policies
//     (k8s.io/apiserver/pkg/cel/environment). As in a cluster, a release accepts only functions
//     that the previous release already had: lists.range came with 1.34, and is accepted from 1.35
//     on.
//   - The built-in kinds: MutatingAdmissionPolicies take effect from 1.36 on, and
//     StorageVersionMigrations exist from 1.37 on.
//   - The feature gates of the admission plugins and of the handler chain.
//   - The version in /version and in OpenAPI.
//
// These properties always match the default release, because upstream's code sets them for the
// whole process:
//
//   - All other feature gates. Clients can notice two of them: conditions of CRDs have an
//     observedGeneration (since 1.36), and unreadable objects can be deleted (since 1.37).
//   - The formats of schemas: k8s-short-name and k8s-long-name came with 1.35.
//   - Changes without a feature gate, such as corrected validation, warnings and messages.
func EmulateVersion(release string) Option {
	return func(o *options) {
		newest := compatibility.DefaultBuildEffectiveVersion().EmulationVersion()
		oldest := newest.SubtractMinor(3)
		v, err := version.ParseMajorMinor(release)
		if err != nil || v.LessThan(oldest) || v.GreaterThan(newest) {
			o.errorf("EmulateVersion: got %q, expected a release from %s to %s", release, oldest, newest)
			return
		}
		o.version = newServerVersion(v)
	}
}

// serverVersion is the version of a server.
type serverVersion struct {
	basecompatibility.EffectiveVersion
}

func newServerVersion(v *version.Version) serverVersion {
	return serverVersion{basecompatibility.NewEffectiveVersionFromString(v.String(), "", "")}
}

// Info has the version where the modules have a placeholder.
func (v serverVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	info.GitVersion = fmt.Sprintf("v%s.%s.0", info.Major, info.Minor)
	return info
}

// featureGate returns the feature gates of the process, as they are in the release.
func (v serverVersion) featureGate() (featuregate.FeatureGate, error) {
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	return gate, gate.SetEmulationVersionAndMinCompatibilityVersion(v.EmulationVersion(), v.MinCompatibilityVersion())
}

// serves reports whether a built-in type is in the release.
func (v serverVersion) serves(obj any) bool {
	if t, ok := obj.(interface{ APILifecycleIntroduced() (major, minor int) }); ok {
		major, minor := t.APILifecycleIntroduced()
		return v.EmulationVersion().AtLeast(version.MajorMinor(uint(major), uint(minor)))
	}
	return true
}

// ruleCheck is an admission plugin that refuses definitions with rules that the release would not
// compile. The validation of definitions knows only the release of the process.
type ruleCheck struct {
	*admission.Handler
	expressions *environment.EnvSet
}

func newRuleCheck(v serverVersion) ruleCheck {
	return ruleCheck{admission.NewHandler(admission.Create, admission.Update), environment.MustBaseEnvSet(v.MinCompatibilityVersion())}
}

func (c ruleCheck) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return c.validate(ctx, a.GetObject())
}

func (c ruleCheck) validate(_ context.Context, obj runtime.Object) error {
	crd, ok := obj.(*apiextensions.CustomResourceDefinition)
	if !ok || c.expressions == environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()) {
		return nil
	}
	at := field.NewPath("spec")
	errs := c.definition(crd.Spec.Validation, at.Child("validation"))
	for i, v := range crd.Spec.Versions {
		errs = append(errs, c.definition(v.Schema, at.Child("versions").Index(i).Child("schema"))...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(apiextensions.Kind("CustomResourceDefinition"), crd.Name, errs)
	}
	return nil
}

func (c ruleCheck) definition(v *apiextensions.CustomResourceValidation, at *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	at = at.Child("openAPIV3Schema")
	s, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	return c.schema(s, true, at)
}

func (c ruleCheck) schema(s *structuralschema.Structural, root bool, at *field.Path) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	if len(s.XValidations) > 0 {
		declared := model.SchemaDeclType(s, root || s.XEmbeddedResource)
		results, err := cel.Compile(s, declared, celconfig.PerCallLimit, c.expressions, cel.NewExpressionsEnvLoader())
		if err != nil {
			return field.ErrorList{field.InternalError(at, err)}
		}
		for i, r := range results {
			at := at.Child("x-kubernetes-validations").Index(i)
			if r.Error != nil {
				errs = append(errs, field.Invalid(at.Child("rule"), s.XValidations[i], r.Error.Detail))
			}
			if r.MessageExpressionError != nil {
				errs = append(errs, field.Invalid(at.Child("messageExpression"), s.XValidations[i], r.MessageExpressionError.Detail))
			}
		}
	}
	errs = append(errs, c.schema(s.Items, false, at.Child("items"))...)
	if p := s.AdditionalProperties; p != nil {
		errs = append(errs, c.schema(p.Structural, false, at.Child("additionalProperties"))...)
	}
	for name, p := range s.Properties {
		errs = append(errs, c.schema(&p, false, at.Child("properties").Key(name))...)
	}
	return errs
}
