package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
)

// Suite is a definition and requests.
type Suite struct {
	// About says what is shown.
	About string
	// Past says that the definition is one of old, which the server serves but does not
	// take any longer.
	Past bool
	// CRD is the definition.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Before is the definition while the old objects of updates are created, if that was
	// another. It is how an object can be there that CRD would not let pass.
	Before *apiextensionsv1.CustomResourceDefinition
	// Cases are the requests.
	Cases []Case
	// Options are those of each request offline, for what else there is on the server.
	Options []schema.Option `json:"-"`
}

// Case is one request, or one after another has made an old object.
type Case struct {
	Name string
	// Version of the request; the storage version if it is empty.
	Version string
	// Object is what is sent; apiVersion, kind and metadata.name are filled in where
	// they are missing, and metadata.resourceVersion in an update.
	Object map[string]any
	// Raw is sent instead, if it is there: NAME in it is replaced, and in an update
	// RESOURCEVERSION.
	Raw string
	// Old makes the request an update of this object, which is created first, in the
	// version OldVersion or the storage version.
	Old        map[string]any
	OldVersion string
	// Status makes it an update by way of the status subresource.
	Status bool
	// Read makes it a read of Old, in each version.
	Read bool
	// Want, if it is there, is a part of the message, of a cause or of a warning that
	// there has to be with field validation Strict; "accepted" is that the request
	// succeeds. It keeps a case from agreeing about something else than it is about.
	Want string
}

// ReadSuite reads a suite from a YAML file.
func ReadSuite(file string) (*Suite, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &Suite{}
	if text, err = yaml.YAMLToJSONStrict(text); err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	// A decoder makes floats of all numbers; an object is sent as it is written.
	var raw struct {
		Cases []struct{ Object, Old json.RawMessage }
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	for i, c := range raw.Cases {
		for into, text := range map[*map[string]any]json.RawMessage{&s.Cases[i].Object: c.Object, &s.Cases[i].Old: c.Old} {
			if text != nil {
				if *into, err = decode(text); err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return s, nil
}

// Reporter is the part of testing.TB that a suite needs.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Run runs the suite on both sides and reports each difference. The error says that
// something else went wrong.
func (s *Suite) Run(ctx context.Context, server *Server, t Reporter) error {
	r, err := s.begin(t)
	if err != nil {
		return err
	}
	r.server = server
	install := server.Install
	if s.Past {
		install = server.InstallPast
	}
	first := r.crd
	if r.beforeCRD != nil {
		first = r.beforeCRD
	}
	if err := install(ctx, first); err != nil {
		return err
	}
	// All old objects, and then all requests.
	for i := range s.Cases {
		if s.Cases[i].Old == nil {
			continue
		}
		for _, mode := range r.modes(i) {
			if err := r.makeOld(ctx, i, mode); err != nil {
				return fmt.Errorf("%s: the old object: %w", s.Cases[i].Name, err)
			}
		}
	}
	if r.beforeCRD != nil {
		if err := server.Install(ctx, r.crd); err != nil {
			return err
		}
	}
	for i := range s.Cases {
		for _, mode := range r.modes(i) {
			if err := r.check(ctx, i, mode); err != nil {
				return fmt.Errorf("%s: %w", s.Cases[i].Name, err)
			}
		}
	}
	return nil
}

// RunOffline runs the suite without a server, and reports what is not as the cases say.
func (s *Suite) RunOffline(ctx context.Context, t Reporter) error {
	r, err := s.begin(t)
	if err != nil {
		return err
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		name, resourceVersion := r.name(i, ""), ""
		var old []byte
		if c.Old != nil {
			stored, err := r.oldOffline(ctx, c, name)
			if err != nil {
				return fmt.Errorf("%s: the old object: %w", c.Name, err)
			}
			object, err := decode(stored)
			if err != nil {
				return err
			}
			metadata := object["metadata"].(map[string]any)
			resourceVersion = "10"
			metadata["uid"], metadata["resourceVersion"] = "3b7c", resourceVersion
			old = mustJSON(object)
		}
		if c.Read {
			if _, err := r.definition.Version(r.version(c.Version)).Read(ctx, old); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			continue
		}
		out, err := r.offline(ctx, c, metav1.FieldValidationStrict, r.body(c, name, resourceVersion), old)
		o, err := offline(out, err, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		r.expect(c, o)
	}
	return nil
}

// begin compiles the definitions.
func (s *Suite) begin(t Reporter) (*run, error) {
	r := &run{Suite: s, t: t, crd: s.CRD.DeepCopy(), beforeCRD: s.Before.DeepCopy(), stored: map[string][]byte{}}
	if r.beforeCRD != nil {
		// So that one sees which of the two is served.
		mark(r.beforeCRD, "before")
		mark(r.crd, "now")
	}
	var err error
	if r.definition, err = schema.New(r.crd); err != nil {
		return nil, err
	}
	if r.before = r.definition; r.beforeCRD != nil {
		r.before, err = schema.New(r.beforeCRD)
	}
	return r, err
}

func mark(crd *apiextensionsv1.CustomResourceDefinition, text string) {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Deprecated = true; v.DeprecationWarning == nil {
			v.DeprecationWarning = new(text + " " + v.Name)
		}
	}
}

type run struct {
	*Suite
	server             *Server
	t                  Reporter
	crd, beforeCRD     *apiextensionsv1.CustomResourceDefinition // the latter may be nil
	definition, before *schema.Definition
	stored             map[string][]byte // the old objects, by name, as they are offline
}

// modes returns the field validations to try; "" is what the server does if nothing is
// said.
func (r *run) modes(i int) []string {
	if r.Cases[i].Read {
		return []string{""}
	}
	return []string{metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore, ""}
}

func (r *run) name(i int, mode string) string {
	return fmt.Sprintf("case-%d%s", i, strings.ToLower(mode))
}

func (r *run) version(name string) string {
	if name == "" {
		return r.definition.StorageVersion()
	}
	return name
}

// fill returns the object with what every object needs.
func (r *run) fill(object map[string]any, version, name, resourceVersion string) []byte {
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		return mustJSON(object)
	}
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	set := func(m map[string]any, key, value string) {
		if _, ok := m[key]; !ok && value != "" {
			m[key] = value
		}
	}
	set(object, "apiVersion", r.CRD.Spec.Group+"/"+version)
	set(object, "kind", r.CRD.Spec.Names.Kind)
	if metadata["generateName"] == nil {
		set(metadata, "name", name)
	}
	set(metadata, "resourceVersion", resourceVersion)
	object["metadata"] = metadata
	return mustJSON(object)
}

// makeOld creates an old object, on both sides.
func (r *run) makeOld(ctx context.Context, i int, mode string) error {
	c := &r.Cases[i]
	version, name := r.version(c.OldVersion), r.name(i, mode)
	got, err := r.server.do(ctx, http.MethodPost, path(r.crd, version, ""), nil, r.fill(c.Old, version, name, ""))
	if err != nil {
		return err
	}
	if got.Code != http.StatusCreated {
		return fmt.Errorf("%+v", got)
	}
	if status, ok := c.Old["status"]; ok && r.hasStatus(version) {
		// The status needs a request of its own.
		got.Object["status"] = status
		if got, err = r.server.do(ctx, http.MethodPut, path(r.crd, version, name)+"/status", nil, mustJSON(got.Object)); err != nil {
			return err
		}
		if got.Code != http.StatusOK {
			return fmt.Errorf("%+v", got)
		}
	}
	r.stored[name], err = r.oldOffline(ctx, c, name)
	return err
}

// oldOffline creates an old object without a server.
func (r *run) oldOffline(ctx context.Context, c *Case, name string) ([]byte, error) {
	version := r.version(c.OldVersion)
	body := r.fill(c.Old, version, name, "")
	out, err := r.before.Version(version).Create(ctx, body, r.Options...)
	if _, ok := c.Old["status"]; ok && err == nil && r.hasStatus(version) {
		out, err = r.before.Version(version).UpdateStatus(ctx, body, out.Stored, r.Options...)
	}
	if err != nil {
		return nil, err
	}
	return out.Stored, nil
}

func (r *run) hasStatus(version string) bool {
	for _, v := range r.CRD.Spec.Versions {
		if v.Name == version {
			return v.Subresources != nil && v.Subresources.Status != nil
		}
	}
	return false
}

// live returns an old object as it is stored, with its resourceVersion.
func (r *run) live(ctx context.Context, name string) ([]byte, string, error) {
	got, err := r.server.do(ctx, http.MethodGet, path(r.crd, r.definition.StorageVersion(), name), nil, nil)
	if err != nil || got.Code != http.StatusOK {
		return nil, "", fmt.Errorf("%w: %+v", err, got)
	}
	metadata, _ := got.Object["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	stored, err := r.server.stored(ctx, r.crd, name)
	if err != nil {
		return nil, "", err
	}
	stored["metadata"].(map[string]any)["resourceVersion"] = version
	return mustJSON(stored), version, nil
}

// check sends one request, dry and for good, and compares.
func (r *run) check(ctx context.Context, i int, mode string) error {
	c := &r.Cases[i]
	if c.Read {
		return r.checkRead(ctx, i)
	}
	version, name := r.version(c.Version), r.name(i, mode)
	method, at, code := http.MethodPost, path(r.crd, version, ""), int32(http.StatusCreated)
	var old []byte
	resourceVersion := ""
	if c.Old != nil {
		var err error
		if old, resourceVersion, err = r.live(ctx, name); err != nil {
			return err
		}
		method, at, code = http.MethodPut, path(r.crd, version, name), http.StatusOK
		if c.Status {
			at += "/status"
		}
	}
	body := r.body(c, name, resourceVersion)
	out, err := r.offline(ctx, c, mode, body, old)
	want, offErr := offline(out, err, code)
	if offErr != nil {
		return offErr
	}
	if mode == metav1.FieldValidationStrict {
		r.expect(c, want)
	}
	query := url.Values{"fieldManager": {"test"}}
	if mode != "" {
		query.Set("fieldValidation", mode)
	}
	dry := maps.Clone(query)
	dry.Set("dryRun", "All")
	got, err := r.server.do(ctx, method, at, dry, body)
	if err != nil {
		return err
	}
	r.compare(c, mode+" dry", got, want)
	if got, err = r.server.do(ctx, method, at, query, body); err != nil {
		return err
	}
	r.compare(c, mode, got, want)
	if want.Object == nil || got.Object == nil {
		return nil
	}
	metadata, _ := got.Object["metadata"].(map[string]any)
	if name, _ = metadata["name"].(string); name == "" {
		return nil // it was generated, and is not there to compare
	}
	there, err := r.server.stored(ctx, r.crd, name)
	if err != nil {
		return err
	}
	stored, err := decode(out.Stored)
	if err != nil {
		return err
	}
	r.compare(c, mode+" stored", Outcome{Object: there}, Outcome{Object: stored})
	return nil
}

// body returns what a request sends.
func (r *run) body(c *Case, name, resourceVersion string) []byte {
	if c.Raw != "" {
		return []byte(strings.NewReplacer("NAME", name, "RESOURCEVERSION", resourceVersion).Replace(c.Raw))
	}
	return r.fill(c.Object, r.version(c.Version), name, resourceVersion)
}

// offline does a request without a server.
func (r *run) offline(ctx context.Context, c *Case, mode string, body, old []byte) (*schema.Result, error) {
	opts := append([]schema.Option{schema.FieldValidation(mode), schema.Namespace(namespace)}, r.Options...)
	switch v := r.definition.Version(r.version(c.Version)); {
	case c.Status:
		return v.UpdateStatus(ctx, body, old, opts...)
	case c.Old != nil:
		return v.Update(ctx, body, old, opts...)
	default:
		return v.Create(ctx, body, opts...)
	}
}

// checkRead reads an old object in each version, and compares.
func (r *run) checkRead(ctx context.Context, i int) error {
	name := r.name(i, "")
	for _, v := range r.CRD.Spec.Versions {
		if !v.Served {
			continue
		}
		out, err := r.definition.Version(v.Name).Read(ctx, r.stored[name])
		want, err := offline(out, err, http.StatusOK)
		if err != nil {
			return err
		}
		got, err := r.server.do(ctx, http.MethodGet, path(r.crd, v.Name, name), nil, nil)
		if err != nil {
			return err
		}
		strip(got.Object, true)
		r.compare(&r.Cases[i], "read in "+v.Name, got, want)
	}
	return nil
}

// compare reports a difference.
func (r *run) compare(c *Case, mode string, got, want Outcome) {
	r.t.Helper()
	strip(got.Object, c.Old == nil)
	strip(want.Object, c.Old == nil)
	// In a dry run, this key has no prefix.
	want.Message = strings.Replace(want.Message, "Key: /registry/", "Key: /", 1)
	got.Message = strings.Replace(got.Message, "Key: /registry/", "Key: /", 1)
	if metadata, ok := c.Object["metadata"].(map[string]any); ok && metadata["generateName"] != nil {
		// The end of the name is random.
		generated := regexp.MustCompile(regexp.QuoteMeta(fmt.Sprint(metadata["generateName"])) + "[0-9a-z]{5}\\b")
		got.Message, want.Message = generated.ReplaceAllString(got.Message, ""), generated.ReplaceAllString(want.Message, "")
	}
	if diff := gocmp.Diff(got, want); diff != "" {
		r.t.Errorf("%s: %s (-server +offline):\n%s", c.Name, mode, diff)
	}
}

// expect reports that a case is not about what it should be.
func (r *run) expect(c *Case, o Outcome) {
	r.t.Helper()
	said := slices.Concat([]string{o.Message}, o.Causes, o.Warnings)
	if c.Want == "" || c.Want == "accepted" && o.Object != nil || slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.Want) }) {
		return
	}
	r.t.Errorf("%s: want %q, got %+v", c.Name, c.Want, o)
}
