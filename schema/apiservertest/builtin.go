package apiservertest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/apistorage"
)

// builtins has the storage of each built-in kind.
type builtins map[schema.GroupVersionKind]*registry.Store

// installBuiltins serves client-go's kinds that are stable, each in the version that kube-apiserver
// prefers.
func (s *Server) installBuiltins(server *genericapiserver.GenericAPIServer, config *genericapiserver.RecommendedConfig, options restOptions) (builtins, error) {
	versions := map[string]schema.GroupVersion{}
	for _, gv := range clientKinds().PrioritizedVersionsAllGroups() {
		stable := !strings.Contains(gv.Version, "alpha") && !strings.Contains(gv.Version, "beta")
		if stable && version.CompareKubeAwareVersionStrings(gv.Version, versions[gv.Group].Version) > 0 {
			versions[gv.Group] = gv
		}
	}
	all := builtins{}
	for _, gv := range versions {
		if err := s.install(all, server, config, options, gv); err != nil {
			return nil, fmt.Errorf("%s: %w", gv, err)
		}
	}
	for _, store := range all {
		server.RegisterDestroyFunc(store.DestroyFunc)
	}
	return all, nil
}

// newScheme returns a scheme of one group version. Its types are the internal ones too: there
// is no other version to convert to.
func newScheme(gv schema.GroupVersion) *runtime.Scheme {
	s := runtime.NewScheme()
	internal := schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}
	for kind, t := range clientKinds().KnownTypes(gv) {
		if t.PkgPath() == reflect.TypeFor[metav1.Status]().PkgPath() {
			continue // the options of requests
		}
		obj := reflect.New(t).Interface().(runtime.Object)
		s.AddKnownTypeWithName(gv.WithKind(kind), obj)
		s.AddKnownTypeWithName(internal.WithKind(kind), obj)
		s.AddTypeDefaultingFunc(obj, setDefaults)
		addSelectors(s, gv.WithKind(kind), obj)
	}
	apistorage.AddScale(s)
	metav1.AddToGroupVersion(s, gv)
	if v1 := (schema.GroupVersion{Version: "v1"}); gv != v1 {
		metav1.AddToGroupVersion(s, v1)
	}
	_ = s.SetVersionPriority(gv)
	return s
}

func (s *Server) install(all builtins, server *genericapiserver.GenericAPIServer, config *genericapiserver.RecommendedConfig, options restOptions, gv schema.GroupVersion) error {
	types := newScheme(gv)
	codecs := serializer.NewCodecFactory(types, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
	options.uncached = true
	options.codec = codecs.LegacyCodec(gv)
	if gv == eventsv1.SchemeGroupVersion {
		options.codec = eventCodec{serializer.NewCodecFactory(newScheme(corev1.SchemeGroupVersion)).LegacyCodec(corev1.SchemeGroupVersion)}
	}
	// The elements of a list have no kind, as in a cluster.
	options.codec = runtime.NewCodec(options.codec, runtime.WithoutVersionDecoder{Decoder: options.codec})
	storages := map[string]rest.Storage{}
	served := map[string][]string{}
	known := clientKinds().KnownTypes(gv)
	for kind, t := range known {
		list := known[kind+"List"]
		_, object := t.FieldByName("ObjectMeta")
		if !object || list == nil || kind == "ComponentStatus" || !s.version.serves(reflect.New(t).Interface()) {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
		store, err := newStore(types, options, s.rules.expressions, gv.WithKind(kind), plural.Resource, t, list)
		if err != nil {
			return err
		}
		all[gv.WithKind(kind)] = store
		served[plural.Resource] = []string{gv.String()}
		s.addStorages(storages, store, gv.WithKind(kind), plural.Resource)
	}
	if gv.Group == authorizationv1.GroupName {
		var decide authorizer.AuthorizerFunc = server.Authorizer.Authorize
		if s.rbac != nil {
			decide = s.rbac.authorize // a review is no request of the user whom it is about
		}
		for _, review := range []runtime.Object{&authorizationv1.SubjectAccessReview{}, &authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.LocalSubjectAccessReview{}} {
			rest := reviewREST{review, decide}
			storages[rest.GetSingularName()+"s"] = rest
		}
	}
	if len(storages) == 0 {
		return nil
	}
	root, manager := genericapiserver.APIGroupPrefix, server.AggregatedDiscoveryGroupManager
	if gv.Group == "" {
		root, manager = genericapiserver.DefaultLegacyAPIPrefix, server.AggregatedLegacyDiscoveryGroupManager
	} else {
		server.Handler.GoRestfulContainer.Add(newGroupService(gv))
	}
	// There are no OpenAPI definitions of the built-in types outside of kube-apiserver.
	path := root + "/" + gv.String() + "/"
	config.OpenAPIConfig.IgnorePrefixes = append(config.OpenAPIConfig.IgnorePrefixes, path)
	config.OpenAPIV3Config.IgnorePrefixes = append(config.OpenAPIV3Config.IgnorePrefixes, path)
	group := apistorage.NewGroupVersion(server, &config.Config, root, gv, storages, types)
	group.AllServedVersionsByResource, group.Serializer, group.TypeConverter = served, codecs, typeConverter{applyconfigurations.NewTypeConverter(types)}
	group.Creater, group.Convertor, group.ConvertabilityChecker, group.Defaulter = types, types, types, types
	group.UnsafeConvertor = runtime.UnsafeObjectConvertor(types)
	resources, _, err := group.InstallREST(server.Handler.GoRestfulContainer)
	if err != nil {
		return err
	}
	manager.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: gv.Version, Resources: resources,
	})
	return nil
}

// addStorages adds the storages of a kind and of its subresources.
func (s *Server) addStorages(all map[string]rest.Storage, store *registry.Store, gvk schema.GroupVersionKind, resource string) {
	named := namedStore{store, gvk.Kind}
	all[resource] = named
	switch gvk.Kind {
	case "Namespace":
		store.ShouldDeleteDuringUpdate = shouldDeleteNamespace
		all[resource] = namespaceREST{named, s}
	case "Pod":
		all[resource+"/binding"] = bindingREST{store}
	}
	if fieldOf(store.New(), "Status").IsValid() {
		strategy := store.UpdateStrategy.(strategy)
		strategy.status = true
		all[resource+"/status"] = apistorage.NewStatus(store, strategy)
	}
	if replicas, _, _ := scalable(store.New()); replicas != nil {
		all[resource+"/scale"] = scaleREST{store, gvk.GroupVersion()}
	}
}

// namedStore is the storage of a kind that may have a short name.
type namedStore struct {
	*registry.Store
	kind string
}

func (s namedStore) ShortNames() []string { return shortNames[s.kind] }

func newStore(s *runtime.Scheme, options restOptions, expressions *environment.EnvSet, gvk schema.GroupVersionKind, plural string, t, list reflect.Type) (*registry.Store, error) {
	namespaced := !slices.Contains(clusterScoped, gvk.Kind)
	strategy := strategy{ObjectTyper: s, NameGenerator: names.SimpleNameGenerator, kind: gvk, namespaced: namespaced, expressions: expressions}
	resource := schema.GroupResource{Group: gvk.Group, Resource: plural}
	attrs := withSelectable(storage.DefaultNamespaceScopedAttr)
	if !namespaced {
		attrs = withSelectable(storage.DefaultClusterScopedAttr)
	}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return reflect.New(t).Interface().(runtime.Object) },
		NewListFunc:               func() runtime.Object { return reflect.New(list).Interface().(runtime.Object) },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind)},
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attrs}
		},
		CreateStrategy: strategy, UpdateStrategy: strategy, DeleteStrategy: strategy, ResetFieldsStrategy: strategy,
		TableConvertor: rest.NewDefaultTableConvertor(resource),
	}
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attrs})
}

// strategy creates, updates and deletes objects of any built-in kind. It sets metadata and the
// generation, and separates status from the rest.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind       schema.GroupVersionKind
	namespaced bool
	// expressions are those that configurations and policies may have.
	expressions *environment.EnvSet
	status      bool // of the subresource
}

// GetResetFields returns the fields that a writer does not come to own: the status, or with the
// status subresource the spec and the metadata that it keeps.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if s.status {
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if kept := keptMetadata[s.kind.Kind]; kept != nil {
			reset.Insert(fieldpath.MakePathOrDie(kept...))
		}
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(s.kind.GroupVersion().String()): reset}
}

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s strategy) NamespaceScoped() bool { return s.namespaced }

func (s strategy) AllowCreateOnUpdate(context.Context) bool {
	return slices.Contains(upserted, s.kind.Kind)
}

func (s strategy) AllowUnconditionalUpdate(context.Context) bool {
	return !slices.Contains(conditional, s.kind.Kind)
}

func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if slices.Contains(generated, s.kind.Kind) && s.kind.Kind != "CSIDriver" { // which has none before its first change
		obj.(metav1.Object).SetGeneration(1)
	}
	if status := fieldOf(obj, "Status"); status.IsValid() && s.kind.Kind != "Node" { // which kubelets create
		status.SetZero()
	}
	switch o := obj.(type) {
	case *corev1.Namespace:
		o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		o.Status.Phase = corev1.NamespaceActive
	case *corev1.Pod:
		o.Status.Phase = corev1.PodPending
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimPending
	case *corev1.PersistentVolume:
		o.Status.Phase, o.Status.LastPhaseTransitionTime = corev1.VolumePending, new(metav1.Now())
	case *corev1.Node: // kubernetes/plugin/pkg/admission/nodetaint/admission.go
		notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(o.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&notReady) }) {
			o.Spec.Taints = append(o.Spec.Taints, notReady)
		}
	}
}

func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	meta := obj.(metav1.Object)
	if s.status {
		stored := old.DeepCopyObject()
		before := stored.(metav1.Object)
		fieldOf(obj, "Spec").Set(fieldOf(stored, "Spec"))
		switch path := keptMetadata[s.kind.Kind]; {
		case path == nil:
		case path[len(path)-1] == "labels":
			meta.SetLabels(before.GetLabels())
		case path[len(path)-1] == "ownerReferences":
			meta.SetOwnerReferences(before.GetOwnerReferences())
		default:
			metav1.ResetObjectMetaForStatus(meta, before)
		}
		return
	}
	if status := fieldOf(obj, "Status"); status.IsValid() {
		status.Set(fieldOf(old.DeepCopyObject(), "Status"))
	}
	if namespace, ok := obj.(*corev1.Namespace); ok {
		namespace.Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
	}
	if slices.Contains(generated, s.kind.Kind) && !apiequality.Semantic.DeepEqual(desired(obj), desired(old)) {
		meta.SetGeneration(old.(metav1.Object).GetGeneration() + 1)
	}
}

// Canonicalize sets the label of a namespace whose name was generated after defaulting.
func (strategy) Canonicalize(obj runtime.Object) { setDefaults(obj) }

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return append(
		validation.ValidateObjectMetaAccessor(obj.(metav1.Object), s.namespaced, nameOf(s.kind.Kind), field.NewPath("metadata")),
		s.validate(obj)...)
}

// ValidateUpdate leaves the metadata to rest.ValidateUpdate.
func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return append(s.validate(obj), validateImmutable(s.kind.Kind, obj, old)...)
}

// validate checks what both a new and a changed object need.
func (s strategy) validate(obj runtime.Object) field.ErrorList {
	errs := validateAdmission(obj, s.expressions)
	for i, name := range obj.(metav1.Object).GetFinalizers() {
		short := !strings.Contains(name, "/") && !slices.Contains([]string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}, name)
		if short && s.kind.Kind != "Event" && !slices.Contains(shortFinalizers, s.kind.Group) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// fieldOf returns a field of an object, or the zero Value.
func fieldOf(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}
