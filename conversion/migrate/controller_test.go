package migrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

// control runs a controller for the boxes, with the least rights, until the test ends.
func (w *warehouse) control(ctx context.Context) {
	w.t.Helper()
	config := w.user("controller-of-"+w.CRD, migrate.ControllerRules(w.CRD))
	c, err := migrate.NewController(config, []string{w.CRD}, migrate.Rate(0), migrate.PropagationDelay(0))
	expect.NoError(w.t, err)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// migrated waits until only v1 is stored.
func (w *warehouse) migrated() {
	w.t.Helper()
	expect.Eventually(w.t, func() error {
		if stored := w.StoredVersions(); !slices.Equal(stored, []string{"v1"}) {
			return fmt.Errorf("status.storedVersions is %v, want [v1]", stored)
		}
		return nil
	})
	w.OnlyIn("v1")
}

// The controller writes an object that admission refuses to write itself, as its controller does.
func TestController_AdmissionRefuses(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(10)
	w.canary()
	w.hook(w.Plural, w.refuse("box-00001"))
	w.Store("v1")
	w.control(t.Context())
	w.migrated()
}

// A webhook that looks up another object may answer with the error that this does not exist, as the
// validators of controller-runtime do. The webhook then refuses; no object has gone.
func TestController_AdmissionAnswersNotFound(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(3)
	w.canary()
	w.register(w.Plural+"/status", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		status := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "settings-of-"+review.Request.Name).ErrStatus
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &status}
		if err := json.NewEncoder(rw).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	w.Store("v1")
	ctx, lines := logcheck.Record(t.Context())
	w.control(ctx)
	expect.EventuallyTrue(t, "it reports something", func() bool { return len(lines()) > 0 })
	if line := lines()[0]; !strings.Contains(line, "Cannot migrate the stored objects") || !strings.Contains(line, `default/box-00001: admission webhook`) {
		t.Errorf("got %s", line)
	}
	w.stores("v1alpha1", "v1")
}

// A controller says that there is no definition, and migrates once there is one.
func TestController_NoDefinition(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	client, err := dynamic.NewForConfig(w.Config)
	expect.NoError(t, err)
	crds := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	definition := w.Definition()
	expect.NoError(t, crds.Delete(t.Context(), w.CRD, metav1.DeleteOptions{}))
	expect.Eventually(t, func() error {
		_, err := crds.Get(t.Context(), w.CRD, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("definition %s still exists: %v", w.CRD, err)
		}
		return nil
	})
	ctx, lines := logcheck.Record(t.Context())
	w.control(ctx)
	want := `"level"=0 "msg"="The CustomResourceDefinition does not exist; its stored objects are migrated once it is created" "customResourceDefinition"="` + w.CRD + `"`
	expect.EventuallyTrue(t, "it says so", func() bool { return len(lines()) > 0 })
	time.Sleep(time.Second) // in which the watch begins, and wakes the controller
	if diff := cmp.Diff([]string{want}, lines()); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	delete(definition.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(definition.Object, "metadata", field)
	}
	_, err = crds.Create(t.Context(), definition, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.Eventually(t, func() error {
		_, err := w.Boxes("v1").List(t.Context(), metav1.ListOptions{})
		return err
	})
	w.Fill(3)
	w.Store("v1")
	w.migrated()
}

func TestNewController_ChecksItsArguments(t *testing.T) {
	config := controlplane.Shared(t).Config()
	for name, test := range map[string]struct {
		crds []string
		opts []migrate.Option
		want string
	}{
		"no definition": {nil, nil, "crds is empty"},
		"a dry run":     {[]string{"a.example.com"}, []migrate.Option{migrate.DryRun()}, "DryRun is given"},
		"a rate":        {[]string{"a.example.com"}, []migrate.Option{migrate.Rate(-1)}, "Rate is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrate.NewController(config, test.crds, test.opts...)
			expect.ErrorContains(t, err, test.want)
		})
	}
}
