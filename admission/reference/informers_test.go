package reference_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingcache "k8s.io/client-go/tools/cache/testing"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/test/expect"
)

// run runs an informer until the test ends.
func run(t testing.TB, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() { cancel(); <-stopped })
}

// lister is the part of a client that an informer needs.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// informerOf returns an informer of all objects that a client of a clientset lists.
func informerOf[L runtime.Object](clientset any, client lister[L], example runtime.Object) cache.SharedIndexInformer {
	return reference.NewInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: client.Watch,
	}, clientset), example, 0, cache.Indexers{})
}

// A typed informer of a factory serves both directions.
func TestInformer_Typed(t *testing.T) {
	client := kubefake.NewClientset(secret("default", "oven"),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cook"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "oven"}}}}}})
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
		return informerOf(client, client.CoreV1().Pods(""), &corev1.Pod{})
	})
	podInformer, secretInformer := factory.Core().V1().Pods().Informer(), factory.Core().V1().Secrets().Informer()
	secretsOfPod := func(p *corev1.Pod) (refs []reference.Ref) {
		for i, v := range p.Spec.Volumes {
			refs = append(refs, reference.Ref{Path: field.NewPath("spec", "volumes").Index(i).Child("secret", "secretName"), Name: v.Secret.SecretName})
		}
		return refs
	}
	podsOf := follow(t, schema.GroupResource{Resource: "pods"}, podInformer, reference.Namespaced(secrets), secretsOfPod)
	known, err := reference.NewTarget(reference.Namespaced(secrets), reference.Unwatched(secretInformer), (&live{}).get)
	expect.NoError(t, err)
	run(t, podInformer)
	run(t, secretInformer)
	expect.EventuallyTrue(t, "both have synced", func() bool { return podsOf.Ready(nil) == nil && known.Ready(nil) == nil })

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "oven"}}},
		{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nails"}}},
	}}}
	decides(t, reference.Exists(known, secretsOfPod), pod, `spec.volumes[1].secret.secretName: Not found: "nails"`)
	unused := reference.NotReferenced[*corev1.Secret](podsOf)
	if _, err := unused(t.Context(), secret("default", "oven")); fmt.Sprint(err) != `secrets "oven" is forbidden: referenced by pods: default/cook` {
		t.Error(err)
	}
	if _, err := unused(t.Context(), secret("other", "oven")); err != nil {
		t.Error(err)
	}
	expect.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "cook", metav1.DeleteOptions{}))
	expect.EventuallyTrue(t, "nobody uses the secret", func() bool { _, err := unused(t.Context(), secret("default", "oven")); return err == nil })
}

// A dynamic informer serves both directions.
func TestInformer_Dynamic(t *testing.T) {
	object := func(kind, namespace, name string, toppings ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"toppings": toppings}}}
		u.SetAPIVersion(v1beta1.GroupVersion.String())
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	pizzaVersion, toppingVersion := pizzas.WithVersion("v1beta1"), toppings.WithVersion("v1beta1")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{pizzaVersion: "PizzaList", toppingVersion: "ToppingList"},
		object("Topping", "", "tomato"), object("Pizza", "default", "margherita", map[string]any{"name": "tomato"}))
	pizzaInformer := informerOf(client, client.Resource(pizzaVersion), &unstructured.Unstructured{})
	toppingInformer := informerOf(client, client.Resource(toppingVersion), &unstructured.Unstructured{})
	refs := unstructuredToppings
	pizzasOf := follow(t, pizzas, pizzaInformer, reference.ClusterScoped(toppings), refs)
	known, err := reference.NewTarget(reference.ClusterScoped(toppings), toppingInformer, func(ctx context.Context, _, name string) error {
		_, err := client.Resource(toppingVersion).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	expect.NoError(t, err)
	run(t, pizzaInformer)
	run(t, toppingInformer)
	expect.EventuallyTrue(t, "both have synced", func() bool { return pizzasOf.Ready(nil) == nil && known.Ready(nil) == nil })
	exists := reference.Exists(known, refs)
	decides(t, exists, object("Pizza", "default", "x", map[string]any{"name": "tomato"}, map[string]any{"name": "nails"}), `spec.toppings[1].name: Not found: "nails"`)
	// A topping that was created this moment is found, whether the informer has it or not.
	_, err = client.Resource(toppingVersion).Create(t.Context(), object("Topping", "", "salami"), metav1.CreateOptions{})
	expect.NoError(t, err)
	decides(t, exists, object("Pizza", "default", "x", map[string]any{"name": "salami"}))
	if _, err := reference.NotReferenced[*unstructured.Unstructured](pizzasOf)(t.Context(), object("Topping", "", "tomato")); fmt.Sprint(err) != `toppings.restaurant.programming-kubernetes.info "tomato" is forbidden: referenced by pizzas: default/margherita` {
		t.Error(err)
	}
}

// A metadata-only informer serves both directions.
func TestInformer_MetadataOnly(t *testing.T) {
	s := metadatafake.NewTestScheme()
	expect.NoError(t, metav1.AddMetaToScheme(s))
	object := func(kind, namespace, name, topping string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"example.com/topping": topping}},
		}
	}
	pizzaVersion, toppingVersion := pizzas.WithVersion("v1beta1"), toppings.WithVersion("v1beta1")
	client := metadatafake.NewSimpleMetadataClient(s, object("Topping", "", "tomato", ""), object("Topping", "shop", "tomato", ""), object("Pizza", "default", "margherita", "tomato"))
	pizzaInformer := informerOf(client, client.Resource(pizzaVersion), &metav1.PartialObjectMetadata{})
	refs := annotated("example.com/topping")
	pizzasOf := follow(t, pizzas, pizzaInformer, reference.ClusterScoped(toppings), refs)
	run(t, pizzaInformer)
	expect.EventuallyTrue(t, "it has synced", func() bool { return pizzasOf.Ready(nil) == nil })
	if got := denial(t, "tomato", pizzasOf); got != "pizzas: default/margherita" {
		t.Error(got)
	}
	// No informer has this topping: the metadata client finds it.
	known, err := reference.NewTarget(reference.ClusterScoped(toppings), reference.Unwatched(holding()), reference.Metadata(client, toppingVersion))
	expect.NoError(t, err)
	exists := reference.Exists(known, refs)
	decides(t, exists, object("Pizza", "default", "x", "tomato"))
	decides(t, exists, object("Pizza", "default", "x", "nails"), `metadata.annotations[example.com/topping]: Not found: "nails"`)
	get := reference.Metadata(client, toppingVersion)
	expect.NoError(t, get(t.Context(), "shop", "tomato"))
	var reads []clienttesting.GetActionImpl
	for _, action := range client.Actions() {
		if get, ok := action.(clienttesting.GetActionImpl); ok {
			reads = append(reads, get)
		}
	}
	want := []clienttesting.GetActionImpl{
		clienttesting.NewRootGetAction(toppingVersion, "tomato"),
		clienttesting.NewRootGetAction(toppingVersion, "nails"),
		clienttesting.NewGetAction(toppingVersion, "shop", "tomato"),
	}
	if diff := cmp.Diff(want, reads); diff != "" {
		t.Errorf("reads, of which none names a resourceVersion (-want +got):\n%s", diff)
	}
}

// TestReferrers_BrokenWatch lets an informer miss changes, so that it must list again. The
// index is exact after that.
func TestReferrers_BrokenWatch(t *testing.T) {
	source := testingcache.NewFakeControllerSource()
	for i := range 500 {
		source.Add(pizza(fmt.Sprintf("p%03d", i), "tomato"))
	}
	informer := reference.NewInformer(source, &v1beta1.Pizza{}, 0, cache.Indexers{})
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), toppingsOf)
	run(t, informer)
	expect.EventuallyTrue(t, "it has synced", pizzasOf.HasSynced)
	if got := pizzasOf.Of("", "tomato"); len(got) != 500 {
		t.Fatalf("when it has synced, there are %d users", len(got))
	}
	for i := range 500 {
		p := pizza(fmt.Sprintf("p%03d", i), "salami")
		switch {
		case i%3 == 0:
			source.DeleteDropWatch(p)
		case i%3 == 1:
			source.ModifyDropWatch(p)
		}
	}
	source.AddDropWatch(pizza("fresh", "tomato", "salami"))
	source.ResetWatch()
	expect.EventuallyTrue(t, "the new one is there", func() bool { return len(pizzasOf.Of("", "salami")) == 168 })
	expect.EventuallyTrue(t, "the others have gone", func() bool { return len(pizzasOf.Of("", "tomato")) == 167 })
	if got, want := pizzasOf.Of("", "salami")[0].String(), "default/fresh"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Events come while users are asked for.
func TestReferrers_Concurrent(t *testing.T) {
	source := testingcache.NewFakeControllerSource()
	informer := reference.NewInformer(source, &v1beta1.Pizza{}, 0, cache.Indexers{})
	pizzasOf := follow(t, pizzas, informer, reference.ClusterScoped(toppings), func(p *v1beta1.Pizza) []reference.Ref {
		return append(toppingsOf(p), reference.Ref{Path: field.NewPath("x"), Name: "dough"})
	})
	run(t, informer)
	expect.EventuallyTrue(t, "it is watched", func() bool { return pizzasOf.Ready(nil) == nil })
	go func() {
		for i := range 300 {
			source.Add(pizza(fmt.Sprintf("p%d", i), fmt.Sprintf("t%d", i%3)))
		}
	}()
	last := 0
	expect.EventuallyTrue(t, "all are there", func() bool {
		got := len(pizzasOf.Of("", "dough"))
		if got < last {
			t.Errorf("from %d to %d", last, got)
		}
		last = got
		_ = denial(t, "t1", pizzasOf)
		return got == 300
	})
}
