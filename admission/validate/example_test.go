package validate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/validate"
)

// Database is the custom resource of the examples.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec DatabaseSpec `json:"spec"`
}

type DatabaseSpec struct {
	Engine        string   `json:"engine,omitempty"`
	VolumeName    string   `json:"volumeName,omitempty"`
	Plan          string   `json:"plan,omitempty"`
	MaintenanceBy string   `json:"maintenanceBy,omitempty"`
	Restore       *Restore `json:"restore,omitempty"`
	Volumes       []Volume `json:"volumes,omitempty"`
}

// Restore is the source of the initial content.
type Restore struct {
	S3       *Bucket `json:"s3,omitempty"`
	GCS      *Bucket `json:"gcs,omitempty"`
	Snapshot string  `json:"snapshot,omitempty"`
}

type Bucket struct {
	Name string `json:"name"`
}

type Volume struct {
	Name  string `json:"name"`
	Class string `json:"class"`
}

func (d *Database) DeepCopyObject() runtime.Object {
	out := *d
	out.Spec.Volumes = slices.Clone(d.Spec.Volumes)
	if d.Spec.Restore != nil {
		out.Spec.Restore = new(*d.Spec.Restore)
	}
	return &out
}

var spec = field.NewPath("spec")

// newHandler returns a webhook for databases.
func newHandler(options ...admission.Option) http.Handler {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "db.example.com", Version: "v1", Kind: "Database"}, &Database{})
	return admission.NewHandler(s, options...)
}

// ask sends a request as the API server does. It returns the reason of the denial, or
// "allowed". Without an old object, the request is a CREATE.
func ask(h http.Handler, user authenticationv1.UserInfo, obj, old *Database) string {
	request := &admissionv1.AdmissionRequest{
		UID:       "1",
		Kind:      metav1.GroupVersionKind{Group: "db.example.com", Version: "v1", Kind: "Database"},
		Name:      "orders",
		Operation: admissionv1.Create,
		UserInfo:  user,
		Object:    runtime.RawExtension{Object: obj},
	}
	if old != nil {
		request.Operation, request.OldObject.Object = admissionv1.Update, old
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		panic(fmt.Sprintf("no decision: %d %s", w.Code, w.Body))
	}
	if answer.Response.Allowed {
		return "allowed"
	}
	return answer.Response.Result.Message
}

// All rules for the update of a database.
func Example() {
	plans := map[string][]string{
		"Small":  {"Medium", "Large"},
		"Medium": {"Large"},
	}
	databaseUpdate := func(_ context.Context, db, old *Database) (field.ErrorList, error) {
		return slices.Concat(
			validate.Immutable(spec.Child("engine"), db.Spec.Engine, old.Spec.Engine),
			validate.ImmutableOnceSet(spec.Child("volumeName"), db.Spec.VolumeName, old.Spec.VolumeName),
			validate.Transition(spec.Child("plan"), db.Spec.Plan, old.Spec.Plan, plans),
		), nil
	}
	h := newHandler(admission.ValidateUpdate(databaseUpdate))

	old := &Database{Spec: DatabaseSpec{Engine: "postgres", Plan: "Medium"}}
	fmt.Println(ask(h, authenticationv1.UserInfo{}, &Database{Spec: DatabaseSpec{Engine: "postgres", Plan: "Large", VolumeName: "pv-7"}}, old))
	fmt.Println(ask(h, authenticationv1.UserInfo{}, &Database{Spec: DatabaseSpec{Engine: "mysql", Plan: "Small"}}, old))
	// Output:
	// allowed
	// Database.db.example.com "orders" is invalid: [spec.engine: Invalid value: "mysql": field is immutable, spec.plan: Invalid value: "Small": may not change from "Medium" to this: supported values: "Large"]
}

// The engine of a database cannot change after its creation.
func ExampleImmutable() {
	fmt.Println(validate.Immutable(spec.Child("engine"), "postgres", "postgres").ToAggregate())
	fmt.Println(validate.Immutable(spec.Child("engine"), "mysql", "postgres").ToAggregate())
	// Output:
	// <nil>
	// spec.engine: Invalid value: "mysql": field is immutable
}

// The operator binds a database to a volume once.
func ExampleImmutableOnceSet() {
	volumeName := spec.Child("volumeName")
	fmt.Println(validate.ImmutableOnceSet(volumeName, "pv-7", "").ToAggregate())
	fmt.Println(validate.ImmutableOnceSet(volumeName, "pv-8", "pv-7").ToAggregate())
	fmt.Println(validate.ImmutableOnceSet(volumeName, "", "pv-7").ToAggregate())
	// Output:
	// <nil>
	// spec.volumeName: Invalid value: "pv-8": field cannot be modified once set
	// spec.volumeName: Invalid value: "": field cannot be cleared once set
}

// A database can grow, but not shrink. An encrypted database stays encrypted.
func ExampleTransition() {
	plans := map[string][]string{
		"":       {"Small", "Medium", "Large"}, // of the time when there were no plans
		"Small":  {"Medium", "Large"},
		"Medium": {"Large"},
	}
	fmt.Println(validate.Transition(spec.Child("plan"), "Large", "", plans).ToAggregate())
	fmt.Println(validate.Transition(spec.Child("plan"), "", "Small", plans).ToAggregate())
	fmt.Println(validate.Transition(spec.Child("plan"), "Small", "Large", plans).ToAggregate())

	encryption := map[bool][]bool{false: {true}}
	fmt.Println(validate.Transition(spec.Child("encrypted"), false, true, encryption).ToAggregate())
	// Output:
	// <nil>
	// spec.plan: Invalid value: "": may not change from "Small" to this: supported values: "Medium", "Large"
	// spec.plan: Invalid value: "Small": may not change from "Large"
	// spec.encrypted: Invalid value: false: may not change from true
}

// A database is restored from exactly one source.
func ExampleExactlyOneOf() {
	oneSource := func(restore *Restore) error {
		return validate.ExactlyOneOf(spec.Child("restore"), map[string]bool{
			"s3":       restore.S3 != nil,
			"gcs":      restore.GCS != nil,
			"snapshot": restore.Snapshot != "",
		}).ToAggregate()
	}
	fmt.Println(oneSource(&Restore{Snapshot: "monday"}))
	fmt.Println(oneSource(&Restore{}))
	fmt.Println(oneSource(&Restore{Snapshot: "monday", S3: &Bucket{Name: "backups"}}))
	// Output:
	// <nil>
	// spec.restore: Invalid value: "": must specify one of: `gcs`, `s3`, `snapshot`
	// spec.restore: Invalid value: "{s3, snapshot}": must specify exactly one of: `gcs`, `s3`, `snapshot`
}

// A password is in a Secret, or the operator generates it.
func ExampleAtMostOneOf() {
	fmt.Println(validate.AtMostOneOf(spec, map[string]bool{"passwordSecretRef": false, "generatePassword": false}).ToAggregate())
	fmt.Println(validate.AtMostOneOf(spec, map[string]bool{"passwordSecretRef": true, "generatePassword": true}).ToAggregate())
	// Output:
	// <nil>
	// spec: Invalid value: "{generatePassword, passwordSecretRef}": must specify at most one of: `generatePassword`, `passwordSecretRef`
}

// An alert has at least one receiver.
func ExampleAtLeastOneOf() {
	fmt.Println(validate.AtLeastOneOf(spec.Child("alerts"), map[string]bool{"email": true, "webhook": true}).ToAggregate())
	fmt.Println(validate.AtLeastOneOf(spec.Child("alerts"), map[string]bool{"email": false, "webhook": false}).ToAggregate())
	// Output:
	// <nil>
	// spec.alerts: Invalid value: "": must specify one of: `email`, `webhook`
}

// Only the team that is on call, and the operator itself, may change the maintenance.
func ExampleChangedOnlyBy() {
	onCall := validate.Group("db-on-call")
	operator := validate.ServiceAccount("db-system", "operator")
	maintenanceBy := spec.Child("maintenanceBy")
	h := newHandler(
		admission.Validate(func(ctx context.Context, db *Database) (field.ErrorList, error) {
			return validate.SetOnlyBy(ctx, maintenanceBy, db.Spec.MaintenanceBy, onCall, operator), nil
		}),
		admission.ValidateUpdate(func(ctx context.Context, db, old *Database) (field.ErrorList, error) {
			return validate.ChangedOnlyBy(ctx, maintenanceBy, db.Spec.MaintenanceBy, old.Spec.MaintenanceBy, onCall, operator), nil
		}))

	ada := authenticationv1.UserInfo{Username: "ada", Groups: []string{"system:authenticated", "db-on-call"}}
	bob := authenticationv1.UserInfo{Username: "bob", Groups: []string{"system:authenticated"}}
	running := &Database{}
	maintained := &Database{Spec: DatabaseSpec{MaintenanceBy: "ada"}}
	fmt.Println("ada:", ask(h, ada, maintained, running))
	fmt.Println("bob:", ask(h, bob, running, maintained))
	// Output:
	// ada: allowed
	// bob: Database.db.example.com "orders" is invalid: spec.maintenanceBy: Forbidden: user "bob" may not change this field
}

// The creator of a database cannot exempt it from the quota.
func ExampleSetOnlyBy() {
	quotaAdmin := func(user authenticationv1.UserInfo) bool { return slices.Contains(user.Extra["roles"], "quota-admin") }
	h := newHandler(admission.Validate(func(ctx context.Context, db *Database) (field.ErrorList, error) {
		path := field.NewPath("metadata", "annotations").Key("db.example.com/no-quota")
		return validate.SetOnlyBy(ctx, path, db.Annotations["db.example.com/no-quota"], quotaAdmin), nil
	}))
	exempt := &Database{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"db.example.com/no-quota": "true"}}}
	fmt.Println(ask(h, authenticationv1.UserInfo{Username: "bob"}, exempt, nil))
	fmt.Println(ask(h, authenticationv1.UserInfo{Username: "bob"}, &Database{}, nil))
	// Output:
	// Database.db.example.com "orders" is invalid: metadata.annotations[db.example.com/no-quota]: Forbidden: user "bob" may not change this field
	// allowed
}

// A database may get more volumes, but the class of each volume is immutable.
func ExampleEachItem() {
	name := func(volume Volume) string { return volume.Name }
	class := func(path *field.Path, volume, old Volume) field.ErrorList {
		return validate.Immutable(path.Child("class"), volume.Class, old.Class)
	}
	old := []Volume{{"data", "fast"}, {"log", "slow"}}
	fmt.Println(validate.EachItem(spec.Child("volumes"), []Volume{{"spare", "slow"}, {"data", "fast"}, {"log", "fast"}}, old, name, class).ToAggregate())
	// Output:
	// spec.volumes[2].class: Invalid value: "fast": field is immutable
}

// A volume with data cannot be removed by mistake.
func ExampleNoRemoveItem() {
	name := func(volume Volume) string { return volume.Name }
	old := []Volume{{"data", "fast"}, {"log", "slow"}}
	fmt.Println(validate.NoRemoveItem(spec.Child("volumes"), []Volume{{"log", "slow"}}, old, name).ToAggregate())
	// Output:
	// spec.volumes[data]: Forbidden: item may not be removed
}
