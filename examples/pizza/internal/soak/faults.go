package soak

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
)

// faults are what happens to the operator.
type faults struct {
	*restaurant
	ledger *ledger

	kills, restarts, updates, deletions, corruptions, overwrites int
	repairs                                                      []time.Duration
}

// run makes one fault after the other until ctx ends. A replica goes only while the other one
// has been ready for a second. In the last part replica A is spared: what it takes then is
// measured.
func (f *faults) run(ctx context.Context, spareFrom time.Time) error {
	for n := 0; ; n++ {
		if !sleep(ctx, time.Second+rand.N(2*time.Second)) {
			return nil
		}
		victim := f.operators[rand.IntN(2)]
		if time.Now().After(spareFrom) {
			victim = f.operators[1]
		}
		fault := []struct {
			what string
			do   func() error
		}{
			{"a kill of replica " + victim.name, func() error { return f.kill(ctx, victim) }},
			{"a rolling update", func() error {
				if time.Now().Add(patience).After(spareFrom) {
					return f.restart(ctx, f.operators[1])
				}
				return f.update(ctx)
			}},
			{"a restart of replica " + victim.name, func() error { return f.restart(ctx, victim) }},
			{"a deletion of the Secret", func() error { return f.deleteSecret(ctx) }},
			{"a kill of replica " + victim.name, func() error { return f.kill(ctx, victim) }},
			{"a corruption of the Secret", func() error { return f.corruptSecret(ctx) }},
			{"an overwritten CA bundle", func() error { return f.overwrite(ctx, n/7) }},
		}[n%7]
		begin := time.Now()
		err := fault.do()
		f.ledger.happened(window{fault.what, begin, time.Now()})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// patience is how long a replica may take to be ready.
const patience = 20 * time.Second

// allReady waits until all replicas are.
func (f *faults) allReady(ctx context.Context) error {
	for begin := time.Now(); len(f.balancer.Ready()) < len(f.operators); {
		if time.Since(begin) > patience {
			return fmt.Errorf("of %d replicas, only %q are ready after %s", len(f.operators), f.balancer.Ready(), patience)
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	if !sleep(ctx, time.Second) {
		return ctx.Err()
	}
	return nil
}

// idle returns an error if less has happened than half of what the time brings on an idle
// machine: then nothing was proven.
func (f *faults) idle(took time.Duration, rotations int) error {
	var errs []error
	for _, c := range []struct {
		what  string
		n     int
		every time.Duration
	}{
		{"rotations", rotations, 12 * time.Second}, {"kills", f.kills, 50 * time.Second}, {"restarts in order", f.restarts, 2 * time.Minute}, {"rolling updates", f.updates, 4 * time.Minute},
		{"deletions of the Secret", f.deletions, 2 * time.Minute}, {"corruptions of the Secret", f.corruptions, 2 * time.Minute},
		{"overwritten CA bundles", f.overwrites, 2 * time.Minute},
	} {
		if want := int(took / c.every); c.n < want {
			errs = append(errs, fmt.Errorf("%s: %d in %s, want %d", c.what, c.n, took.Round(time.Second), want))
		}
	}
	return errors.Join(errs...)
}

func (f *faults) kill(ctx context.Context, o *operator) error {
	if err := f.allReady(ctx); err != nil {
		return err
	}
	w := window{what: o.name, start: time.Now()}
	o.Kill()
	for f.balancer.Connections(o.addr) > 0 { // it breaks its side too
		if !sleep(ctx, 10*time.Millisecond) {
			break
		}
	}
	w.end = time.Now().Add(breaking)
	f.ledger.killed(w)
	f.kills++
	if !sleep(ctx, rand.N(2*time.Second)) {
		return o.start()
	}
	if err := o.start(); err != nil {
		return err
	}
	return o.await(ctx)
}

// propagation is how long it takes until a Service knows that a pod has been deleted. The
// endpoints change with the deletion, not when the pod is seen not to be ready.
const propagation = 300 * time.Millisecond

// update rolls out the other release, which has other rules, in the order of a deployment:
// first the manifests, then one replica after the other. No request may fail.
func (f *faults) update(ctx context.Context) error {
	if err := f.allReady(ctx); err != nil {
		return err
	}
	f.next = !f.next
	if err := f.apply(ctx); err != nil {
		return err
	}
	for _, o := range f.operators {
		o.args = f.release(o.base)
		if err := f.restart(ctx, o); err != nil {
			return err
		}
	}
	f.updates++
	return nil
}

// restart stops a replica in order, as a rollout does. No request may fail.
func (f *faults) restart(ctx context.Context, o *operator) error {
	if err := f.allReady(ctx); err != nil {
		return err
	}
	time.AfterFunc(propagation, func() { f.balancer.Remove(o.addr) })
	if err := o.stop(); err != nil {
		return err
	}
	if err := o.start(); err != nil {
		return err
	}
	f.balancer.Add(o.addr)
	f.restarts++
	return o.await(ctx)
}

func (f *faults) deleteSecret(ctx context.Context) error {
	f.deletions++
	err := f.typed.CoreV1().Secrets(namespace).Delete(ctx, secretName, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil // a replica is about to write it again
	}
	return err
}

func (f *faults) corruptSecret(ctx context.Context) error {
	secrets := f.typed.CoreV1().Secrets(namespace)
	for {
		secret, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		for key := range secret.Data {
			if rand.IntN(2) == 0 {
				secret.Data[key] = []byte("garbage")
			}
		}
		if _, err = secrets.Update(ctx, secret, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			f.corruptions++
			return err
		}
	}
}

// overwrite puts another CA into one of the caBundles, and waits until it is right again.
func (f *faults) overwrite(ctx context.Context, n int) error {
	bundle, err := foreignCA()
	if err != nil {
		return err
	}
	target := []struct {
		resource   schema.GroupVersionResource
		name, path string
	}{
		{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "pizzas." + group, "/spec/conversion/webhook/clientConfig/caBundle"},
		{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, name, "/webhooks/0/clientConfig/caBundle"},
		{schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, name, "/webhooks/0/clientConfig/caBundle"},
	}[n%3]
	patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": target.path, "value": bundle}})
	if err != nil {
		return err
	}
	client := f.client.Resource(target.resource)
	f.putForeign(bundle)
	w := window{what: target.resource.Resource, start: time.Now()}
	defer func() {
		w.end = time.Now()
		f.ledger.overwritten(w)
	}()
	if _, err := client.Patch(ctx, target.name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	f.overwrites++
	foreign := []byte(base64.StdEncoding.EncodeToString(bundle))
	for {
		obj, err := client.Get(ctx, target.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, err := obj.MarshalJSON()
		if err != nil {
			return err
		}
		if !bytes.Contains(text, foreign) {
			break
		}
		if time.Since(w.start) > 30*time.Second {
			return fmt.Errorf("the CA bundle of %s %s has not been repaired for 30 seconds", target.resource.Resource, target.name)
		}
		if !sleep(ctx, 5*time.Millisecond) {
			return nil
		}
	}
	f.repairs = append(f.repairs, time.Since(w.start))
	return nil
}

func foreignCA() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return nil, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "somebody else"}, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw}), nil
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
