package offline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/crdkit/crdkit/internal/testing/differential"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/offline"
)

// step is one request. The steps of a suite build upon each other.
type step struct {
	name    string
	verb    string // create, update, status, patch, patch status, get, list, delete
	version string
	object  string               // of a create, or of an update that is sent as it is
	of      string               // the name of the object of the other verbs
	edit    func(map[string]any) // what an update changes in the object as it is read before
	as      types.PatchType
	patch   string
	dry     bool
	fields  string // the field validation

	namespace                    string // none for the usual one
	labelSelector, fieldSelector string
}

// inGroup returns the steps with objects of a group in the place of example.com.
func inGroup(group string, steps []step) []step {
	steps = slices.Clone(steps)
	for i := range steps {
		for _, text := range []*string{&steps[i].object, &steps[i].patch} {
			*text = strings.ReplaceAll(*text, "example.com/v", group+"/v")
		}
	}
	return steps
}

// outcome is what came of a step, in a form to compare.
type outcome struct {
	Step     string
	Code     int32    `json:",omitempty"` // of a failure
	Reason   string   `json:",omitempty"`
	Message  string   `json:",omitempty"`
	Details  any      `json:",omitempty"`
	Warnings []string `json:",omitempty"`
	Object   any      `json:",omitempty"`
	Same     bool     `json:",omitempty"` // an update has kept the resource version
	Reviews  []string `json:",omitempty"` // what admission webhooks were asked
}

// a server handles requests. The body is what is sent.
type server interface {
	do(t *testing.T, s step, body []byte) (object []byte, warnings []string, failure *metav1.Status)
}

// play sends the steps to a server.
func play(t *testing.T, to server, seen *reviews, steps []step) (all []outcome) {
	t.Helper()
	seen.take()
	seen.create = func(version, object string) {
		if _, _, failure := to.do(t, step{verb: "create", version: version, object: object}, []byte(object)); failure != nil {
			t.Errorf("a webhook that creates an object: %v", failure)
		}
	}
	for _, s := range steps {
		body, before := []byte(s.object), ""
		if s.edit != nil {
			text, _, failure := to.do(t, step{verb: "get", version: s.version, of: s.of}, nil)
			if failure != nil {
				t.Fatalf("%s: %v", s.name, failure)
			}
			object := decode(t, text)
			before = version(object)
			s.edit(object)
			body = encode(t, object)
		}
		if s.patch != "" {
			body = []byte(s.patch)
		}
		seen.take()
		text, warnings, failure := to.do(t, s, body)
		o := outcome{Step: s.name, Warnings: warnings, Reviews: seen.take()}
		if failure != nil {
			o.Code, o.Reason, o.Message = failure.Code, string(failure.Reason), normalize(failure.Message)
			if failure.Details != nil {
				o.Details = json.RawMessage(normalize(string(encode(t, failure.Details))))
			}
		} else {
			object := decode(t, text)
			o.Same = before != "" && version(object) == before
			strip(object)
			o.Object = object
		}
		all = append(all, o)
	}
	// As they come from a file.
	var plain []outcome
	if err := json.Unmarshal(encode(t, all), &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

func version(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	v, _ := metadata["resourceVersion"].(string)
	return v
}

var (
	uids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addresses = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	quoted    = regexp.MustCompile(`is missing in '.*'`) // an object with managedFields
	times     = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`)
	versions  = regexp.MustCompile(`(resourceVersion\\*":\\*")[0-9]+`)
	generated = regexp.MustCompile(`(taken-)[a-z0-9]{5}`)
	// The revision of etcd in an error is the resource version of an object, which differs too
	// (apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go, corruptObjectError).
	revisions = regexp.MustCompile(`(object not decodable revision=)[0-9]+`)
	// The error about a patched object shows all of it (apiserver/pkg/endpoints/handlers/patch.go,
	// applyPatchToCurrentObject), and objects of a Resource have no managedFields.
	managed = regexp.MustCompile(`\\*"managedFields\\*":\[[^]]*\],`)
)

func normalize(text string) string {
	for _, r := range []struct {
		what *regexp.Regexp
		by   string
	}{{uids, "UID"}, {addresses, "ADDRESS"}, {quoted, "is missing in OBJECT"}, {times, "TIME"}, {versions, "${1}VERSION"}, {generated, "${1}NAME"}, {revisions, "${1}REVISION"}, {managed, ""}} {
		text = r.what.ReplaceAllString(text, r.by)
	}
	return text
}

// strip replaces what differs each time, in the metadata of an object and of the items of a
// list.
func strip(object map[string]any) {
	if items, ok := object["items"].([]any); ok {
		for _, item := range items {
			strip(item.(map[string]any))
		}
	}
	if details, ok := object["details"].(map[string]any); ok {
		details["uid"] = "UID"
	}
	if object["kind"] == "Status" {
		delete(object, "metadata")
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	delete(metadata, "managedFields")
	delete(metadata, "continue") // of a list; it is empty, or not there
	for _, name := range []string{"uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"} {
		if v, ok := metadata[name]; ok && v != nil && v != "" {
			metadata[name] = "some"
		}
	}
	if generate, _ := metadata["generateName"].(string); generate != "" && metadata["name"] != nil {
		metadata["name"] = generate + "some"
	}
}

func decode(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return object
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// offlineServer answers with a resource.
type offlineServer struct {
	*offline.Resource
	namespace string // of the lists
}

func (o offlineServer) do(t *testing.T, s step, body []byte) ([]byte, []string, *metav1.Status) {
	ctx := t.Context()
	var opts []offline.RequestOption
	if s.dry {
		opts = append(opts, offline.DryRun())
	}
	if s.fields != "" {
		opts = append(opts, offline.FieldValidation(s.fields))
	}
	out, err := func() (*schema.Result, error) {
		switch s.verb {
		case "create":
			return o.Create(ctx, s.version, body, opts...)
		case "update":
			return o.Update(ctx, s.version, body, opts...)
		case "status":
			return o.UpdateStatus(ctx, s.version, body, opts...)
		case "patch":
			return o.Patch(ctx, s.version, s.namespace, s.of, s.as, body, opts...)
		case "patch status":
			return o.PatchStatus(ctx, s.version, s.namespace, s.of, s.as, body, opts...)
		case "get":
			return o.Get(ctx, s.version, s.namespace, s.of)
		case "list":
			labels, err := labels.Parse(s.labelSelector)
			must(err)
			fields, err := fields.ParseSelector(s.fieldSelector)
			must(err)
			namespace := s.namespace
			if namespace == "" {
				namespace = o.namespace
			}
			return o.List(ctx, s.version, namespace, offline.LabelSelector(labels), offline.FieldSelector(fields))
		case "delete":
			return o.Delete(ctx, s.version, s.namespace, s.of, opts...)
		}
		panic(s.verb)
	}()
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			t.Fatalf("%s: %v", s.name, err)
		}
		return nil, out.Warnings, new(status.Status())
	}
	return out.Object, out.Warnings, nil
}

// httpServer is a real one.
type httpServer struct {
	client   *http.Client
	group    string
	resource func(version, namespace string) string // a URL
}

func (h httpServer) do(t *testing.T, s step, body []byte) ([]byte, []string, *metav1.Status) {
	t.Helper()
	method, path, contentType := "", h.resource(s.version, s.namespace), "application/json"
	of := s.of
	if s.object != "" && s.verb != "create" {
		of = decode(t, body)["metadata"].(map[string]any)["name"].(string)
	}
	switch s.verb {
	case "create":
		method = http.MethodPost
		if !utilyaml.IsJSONBuffer(body) {
			contentType = "application/yaml"
		}
	case "update", "status":
		method = http.MethodPut
	case "patch", "patch status":
		method, contentType = http.MethodPatch, string(s.as)
	case "get", "list":
		method = http.MethodGet
	case "delete":
		method = http.MethodDelete
	}
	if of != "" {
		path += "/" + of
	}
	if strings.HasSuffix(s.verb, "status") {
		path += "/status"
	}
	query := url.Values{}
	if s.dry {
		query.Set("dryRun", "All")
	}
	if s.fields != "" {
		query.Set("fieldValidation", s.fields)
	}
	if s.labelSelector != "" {
		query.Set("labelSelector", s.labelSelector)
	}
	if s.fieldSelector != "" {
		query.Set("fieldSelector", s.fieldSelector)
	}
	if method == http.MethodDelete {
		body = nil
	}
	req, err := http.NewRequestWithContext(t.Context(), method, path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	response, err := differential.Do(h.client, req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	headers, _ := utilnet.ParseWarningHeaders(response.Header["Warning"])
	var warnings []string
	for _, h := range headers {
		warnings = append(warnings, h.Text)
	}
	if response.StatusCode >= 300 {
		status := &metav1.Status{}
		if response.StatusCode == http.StatusNotFound && !utilyaml.IsJSONBuffer(text) {
			// There is nothing at all at this URL, and a client makes an error of that.
			resource := runtimeschema.GroupResource{Group: h.group, Resource: "gadgets"}
			return nil, warnings, new(apierrors.NewGenericServerResponse(404, strings.ToLower(method), resource, "", "", 0, false).Status())
		}
		if err := json.Unmarshal(text, status); err != nil {
			t.Fatalf("%s: %d %s", s.name, response.StatusCode, text)
		}
		status.Code = int32(response.StatusCode)
		return nil, warnings, status
	}
	return text, warnings, nil
}

// reviews notes what a handler of admission reviews is asked.
type reviews struct {
	http.Handler
	create func(version, object string) // creates an object in the server that asks

	mu    sync.Mutex
	seen  []review
	taken int // how many names
}

type review struct{ path, text string }

func (r *reviews) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if text, ok := plainReview(body); ok {
		r.mu.Lock()
		if !strings.Contains(text, `"operation":"CREATE"`) {
			// A server begins with the old object as its cache has it, and starts again if
			// that was stale: the last one counts.
			r.seen = slices.DeleteFunc(r.seen, func(other review) bool { return other.path == req.URL.Path })
		}
		r.seen = append(r.seen, review{req.URL.Path, req.URL.RequestURI() + " " + text})
		r.mu.Unlock()
	}
	if req.URL.Path == "/judge" {
		r.takeName(body)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.Handler.ServeHTTP(w, req)
}

// takeName creates an object that has the name which is to be given to another one, if that
// has the label for it.
func (r *reviews) takeName(body []byte) {
	var asked struct {
		Request struct {
			Object struct {
				APIVersion string
				Metadata   metav1.ObjectMeta
			}
		}
	}
	must(json.Unmarshal(body, &asked))
	metadata := asked.Request.Object.Metadata
	r.mu.Lock()
	take := metadata.Labels["taken"] == "always" || metadata.Labels["taken"] == "2" && r.taken < 2
	if take {
		r.taken++
	}
	r.mu.Unlock()
	if take {
		object := withMetadata(gadget("v1", metadata.Name, "", ""), "generateName", metadata.GenerateName)
		r.create("v1", strings.Replace(object, "example.com/v1", asked.Request.Object.APIVersion, 1))
	}
}

// have reports whether a review has come to a path since the last call of take.
func (r *reviews) have(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.seen, func(seen review) bool { return seen.path == path })
}

// take returns the reviews since the last time, sorted.
func (r *reviews) take() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range r.seen {
		all = append(all, seen.text)
	}
	r.seen, r.taken = nil, 0
	slices.Sort(all)
	return all
}

func plainReview(body []byte) (string, bool) {
	var review map[string]any
	if err := utiljson.Unmarshal(body, &review); err != nil || review["kind"] != "AdmissionReview" {
		return "", false
	}
	request, _ := review["request"].(map[string]any)
	delete(request, "uid")
	delete(request, "userInfo")
	if options, ok := request["options"].(map[string]any); ok {
		delete(options, "fieldManager")
	}
	for _, name := range []string{"object", "oldObject"} {
		if object, ok := request[name].(map[string]any); ok {
			strip(object)
			if metadata := object["metadata"].(map[string]any); metadata["generateName"] != nil && request["name"] != "" {
				request["name"] = metadata["name"]
			}
		}
	}
	text, err := json.Marshal(review)
	return string(text), err == nil
}

// answer answers reviews of either protocol with what a function makes of them.
func answer(f func(request map[string]any) (response map[string]any)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		var review map[string]any
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = utiljson.Unmarshal(body, &review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request := review["request"].(map[string]any)
		response := f(request)
		if response["uid"] == nil {
			response["uid"] = request["uid"]
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
