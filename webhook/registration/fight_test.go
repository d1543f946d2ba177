package registration_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
	"github.com/crdkit/crdkit/test/tier"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/registration"
)

// Another writer overwrites the CA bundle every second, as an injector with another CA does.
func TestInject_BundleOverwrittenEverySecond(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := newShop(t, "overwritten.example.com")
	crd := "pizzas." + s.group
	hooks, ca := c.serve(t, s, "overwritten")
	logged, lines := logcheck.Record(t.Context())
	ctx, stop := context.WithCancel(logged)
	var injecting sync.WaitGroup
	injecting.Go(func() {
		if err := hooks.Inject(ctx, c.Config(), newBundle(ca)); err != nil {
			t.Error(err)
		}
	})
	defer injecting.Wait()
	defer stop()
	expect.Eventually(t, ready(hooks))
	old := s.resource()
	old.Version = "v1alpha1"
	pizzas := c.Resource(old).Namespace("default")
	expect.Eventually(t, func() error {
		_, err := pizzas.Create(t.Context(), s.pizza("salami", "salami"), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})

	var requests, failures int
	var longest time.Duration
	var asking sync.WaitGroup
	asks, asked := context.WithCancel(ctx)
	defer asked()
	asking.Go(func() {
		for last := time.Now(); asks.Err() == nil; time.Sleep(20 * time.Millisecond) {
			requests++
			if _, err := pizzas.Get(asks, "salami", metav1.GetOptions{}); err != nil && asks.Err() == nil {
				failures++
				continue
			}
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	})
	theirs, _, _ := webhooktest.SelfSigned(t, "somebody")
	encoded := base64.StdEncoding.EncodeToString(theirs)
	overwritten, repaired := tier.Pick(15, 30), 0
	overwrite := func() {
		c.patch(t, definitions, crd, `[{"op":"add","path":"/spec/conversion/webhook/clientConfig/caBundle","value":"`+encoded+`"}]`)
	}
	for range overwritten {
		overwrite()
		time.Sleep(time.Second)
		if carry(t, ca, c.get(t, definitions, crd)) == nil {
			repaired++
		}
	}
	expect.Eventually(t, func() error {
		events, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "reason=CABundleOverwritten,type=Warning,involvedObject.kind=CustomResourceDefinition,involvedObject.name=" + crd,
		})
		if err == nil && (len(events.Items) == 0 || !strings.Contains(fmt.Sprint(events.Items[0].Object["message"]), "somebody")) {
			err = fmt.Errorf("the Events are %v", events.Items)
		}
		return err
	})
	asked()
	asking.Wait()
	expect.Eventually(t, func() error { // faster than it may be written again
		overwrite()
		return unready(hooks, `another writer changes the CA bundle repeatedly, with the field managers ["somebody"]`)()
	})
	stop()
	injecting.Wait()
	overwritings := 0
	hooks.Changes(func(_, name, reason string, total int) {
		if name == crd && reason == "CABundleOverwritten" {
			overwritings = total
		}
	})
	named := slices.DeleteFunc(lines(), func(line string) bool {
		return !strings.Contains(line, `"reason"="CABundleOverwritten" "fieldManagers"=["somebody"]`)
	})
	if overwritings < len(named) || len(named) == 0 || len(named) > 12 {
		t.Errorf("the bundle was overwritten %d times; %d lines name the writer", overwritings, len(named))
	}
	t.Logf("%d of %d requests failed (%.0f %%), the longest gap was %s; %d of %d bundles were repaired within a second",
		failures, requests, 100*float64(failures)/float64(requests), longest, repaired, overwritten)
	if repaired < overwritten*3/4 {
		t.Errorf("%d of %d bundles were repaired within a second", repaired, overwritten)
	}
}

// serve serves the webhooks of a shop, and applies their manifests.
func (c cluster) serve(t *testing.T, s *shop, name string) (hooks *registration.Webhooks, ca []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	hooks, err = registration.New(name, append(s.options(), registration.URL(fmt.Sprint("https://", l.Addr())))...)
	expect.NoError(t, err)
	ca, chain, key := webhooktest.SelfSigned(t, hooks.Hosts()[0])
	certs := webhooktest.Files(t, chain, key)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- webhook.Serve(ctx, l, hooks, certs) }()
	t.Cleanup(func() {
		cancel()
		expect.NoError(t, <-served)
	})
	c.apply(t, hooks)
	return hooks, ca
}
