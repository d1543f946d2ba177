package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// PluginName is what the admission plug-in is called by --disable-admission-plugins: it
// asks for the toppings of each pizza to exist, and for a topping that is on a pizza to
// stay.
const PluginName = "RestaurantToppings"

// menu is what the plug-in looks at: the pizzas and the toppings that there are, as the
// server's own watches tell it.
type menu struct {
	pizzas, toppings cache.SharedIndexInformer
	known            *reference.Target
	pizzasOf         *reference.Referrers
}

// newMenu returns the menu of the server that the configuration leads to, which is this one.
// Its informers are still to be run.
func newMenu(loopback *rest.Config, s *runtime.Scheme) (*menu, error) {
	pizzas, toppings, err := newClients(loopback, s)
	if err != nil {
		return nil, err
	}
	m := &menu{
		pizzas:   newInformer(pizzas, &v1beta1.Pizza{}),
		toppings: newInformer(toppings, &v1alpha1.Topping{}),
	}
	topping := reference.ClusterScoped(toppingResource)
	var targetErr, referrersErr error
	m.known, targetErr = reference.NewTarget(topping, m.toppings, func(ctx context.Context, _, name string) error {
		_, err := toppings.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	m.pizzasOf, referrersErr = reference.NewReferrers(pizzaResource, m.pizzas, topping, toppingsOfBeta)
	return m, errors.Join(targetErr, referrersErr)
}

// run runs the informers until the context ends.
func (m *menu) run(ctx context.Context) {
	go m.toppings.RunWithContext(ctx)
	m.pizzas.RunWithContext(ctx)
}

// toppingsOfAlpha returns the Toppings that a pizza names.
func toppingsOfAlpha(pizza *v1alpha1.Pizza) (refs []reference.Ref) {
	for i, name := range pizza.Spec.Toppings {
		refs = append(refs, reference.Ref{Path: toppingsPath.Index(i), Name: name})
	}
	return refs
}

// toppingsOfBeta does the same for v1beta1. There is one for each version, so that the paths
// in an answer are those of the object that the user wrote.
func toppingsOfBeta(pizza *v1beta1.Pizza) (refs []reference.Ref) {
	for i, topping := range pizza.Spec.Toppings {
		refs = append(refs, reference.Ref{Path: toppingsPath.Index(i).Child("name"), Name: topping.Name})
	}
	return refs
}

// wantsMenu is a plug-in that looks at the menu.
type wantsMenu interface{ setMenu(*menu) }

// menuInitializer gives the menu to the plug-ins that want it.
type menuInitializer struct{ menu *menu }

var _ apiadmission.PluginInitializer = menuInitializer{}

func (i menuInitializer) Initialize(plugin apiadmission.Interface) {
	if wants, ok := plugin.(wantsMenu); ok {
		wants.setMenu(i.menu)
	}
}

// toppingsPlugin is the plug-in. The functions in it are the same that a webhook would
// serve with package admission.
type toppingsPlugin struct {
	*apiadmission.Handler

	alpha   func(ctx context.Context, pizza *v1alpha1.Pizza) (field.ErrorList, error)
	beta    func(ctx context.Context, pizza *v1beta1.Pizza) (field.ErrorList, error)
	topping func(ctx context.Context, topping *v1alpha1.Topping) (field.ErrorList, error)
}

var (
	_ apiadmission.ValidationInterface     = &toppingsPlugin{}
	_ apiadmission.InitializationValidator = &toppingsPlugin{}
	_ wantsMenu                            = &toppingsPlugin{}
)

func newPlugin(io.Reader) (apiadmission.Interface, error) {
	return &toppingsPlugin{Handler: apiadmission.NewHandler(apiadmission.Create, apiadmission.Update, apiadmission.Delete)}, nil
}

func (p *toppingsPlugin) setMenu(m *menu) {
	p.alpha = reference.Exists(m.known, toppingsOfAlpha)
	p.beta = reference.Exists(m.known, toppingsOfBeta)
	p.topping = reference.NotReferenced[*v1alpha1.Topping](m.pizzasOf)
}

// ValidateInitialization returns an error for a plug-in that was given no menu.
func (p *toppingsPlugin) ValidateInitialization() error {
	if p.alpha == nil {
		return errors.New("apiserver: the admission plug-in " + PluginName + " has no menu")
	}
	return nil
}

// Validate denies a pizza whose toppings do not exist, and the deletion of a topping that is
// on a pizza.
func (p *toppingsPlugin) Validate(ctx context.Context, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) error {
	resource, deletes := a.GetResource().GroupResource(), a.GetOperation() == apiadmission.Delete
	switch {
	case a.GetSubresource() != "":
		return nil
	case resource == pizzaResource && !deletes:
	case resource == toppingResource && deletes:
	default:
		return nil
	}
	obj, err := versioned(a.GetObject(), a, o)
	if err != nil {
		return err
	}
	old, err := versioned(a.GetOldObject(), a, o)
	if err != nil {
		return err
	}
	request, err := requestOf(a, obj, old)
	if err != nil {
		return err
	}
	ctx = admission.WithRequest(ctx, request)
	if deletes {
		obj = old
	}
	var faults field.ErrorList
	switch obj := obj.(type) {
	case *v1alpha1.Pizza:
		faults, err = p.alpha(ctx, obj)
	case *v1beta1.Pizza:
		faults, err = p.beta(ctx, obj)
	case *v1alpha1.Topping:
		faults, err = p.topping(ctx, obj)
	case nil: // what is deleted without its object is looked at one by one
		return nil
	default:
		err = fmt.Errorf("apiserver: there is no check for a %T", obj)
	}
	var status apierrors.APIStatus
	switch {
	case err == nil && len(faults) > 0:
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), faults)
	case err != nil && !errors.As(err, &status):
		return apierrors.NewInternalError(err)
	}
	return err
}

// versioned returns an object in the version of the request; nil for none.
func versioned(obj runtime.Object, a apiadmission.Attributes, o apiadmission.ObjectInterfaces) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	return o.GetObjectConvertor().ConvertToVersion(obj, a.GetKind().GroupVersion())
}

// requestOf returns the request as a webhook would see it: package reference needs the old
// object, the user and the operation. The objects are in the version of the request.
func requestOf(a apiadmission.Attributes, obj, old runtime.Object) (*admissionv1.AdmissionRequest, error) {
	request := &admissionv1.AdmissionRequest{
		Kind:        metav1.GroupVersionKind(a.GetKind()),
		Resource:    metav1.GroupVersionResource(a.GetResource()),
		SubResource: a.GetSubresource(),
		Name:        a.GetName(),
		Namespace:   a.GetNamespace(),
		Operation:   admissionv1.Operation(a.GetOperation()),
		DryRun:      new(a.IsDryRun()),
	}
	if user := a.GetUserInfo(); user != nil {
		request.UserInfo = authenticationv1.UserInfo{Username: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups()}
		for key, values := range user.GetExtra() {
			if request.UserInfo.Extra == nil {
				request.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
			}
			request.UserInfo.Extra[key] = values
		}
	}
	var objErr, oldErr error
	request.Object.Raw, objErr = text(obj)
	request.OldObject.Raw, oldErr = text(old)
	return request, errors.Join(objErr, oldErr)
}

// text returns an object as JSON; nothing for none.
func text(obj runtime.Object) ([]byte, error) {
	if obj == nil {
		return nil, nil
	}
	return json.Marshal(obj)
}
