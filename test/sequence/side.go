package sequence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/test/differential"
)

// side is one of the two servers, as the sequences of requests see it.
type side struct {
	name   string
	host   string
	client *http.Client
	// stored returns what is stored of an object.
	stored func(ctx context.Context, k *kind, namespace, name string) ([]byte, error)
}

func newSide(name string, config *rest.Config, stored func(context.Context, *kind, string, string) ([]byte, error)) (*side, error) {
	client, err := rest.HTTPClientFor(config)
	return &side{name, config.Host, client, stored}, err
}

// send sends a request and returns the answer.
func (s *side) send(ctx context.Context, r request) (answer, error) {
	body := r.body
	if r.latest {
		var err error
		if body, err = s.withLatest(ctx, r); err != nil {
			return answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, s.host+r.path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", r.accept)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("User-Agent", "sequence/1")
	response, err := differential.Do(s.client, req)
	if err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR; received from peer") {
		return answer{panicked: true}, nil
	} else if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{code: response.StatusCode, warnings: response.Header.Values("Warning"), contentType: response.Header.Get("Content-Type")}
	if a.code == http.StatusNotFound {
		// A server applies a patch to what its watch cache still has of a deleted object, and warns
		// of unknown fields, before etcd says that the object does not exist (etcd3/store.go).
		a.warnings = slices.DeleteFunc(a.warnings, func(w string) bool { return strings.Contains(w, "unknown field") })
	}
	if strings.Contains(a.contentType, "json") || strings.Contains(a.contentType, "yaml") {
		return a, yaml.Unmarshal(text, &a.body)
	}
	a.body = map[string]any{"text": string(text)}
	return a, nil
}

// withLatest returns the body of a request with the resourceVersion that the object has on this side.
func (s *side) withLatest(ctx context.Context, r request) ([]byte, error) {
	at, _, _ := strings.Cut(r.path, "?")
	now, err := s.send(ctx, request{method: http.MethodGet, path: at, accept: "application/json"})
	if err != nil {
		return nil, err
	}
	version, ok, err := unstructured.NestedString(now.body, "metadata", "resourceVersion")
	if now.code != http.StatusOK || !ok || err != nil {
		return r.body, err
	}
	return bytes.Replace(r.body, []byte(`"metadata":{`), []byte(`"metadata":{"resourceVersion":"`+version+`",`), 1), nil
}

// answer is what a server answers.
type answer struct {
	panicked    bool
	code        int
	warnings    []string
	contentType string
	body        map[string]any
}

// names gives what differs between servers, but means the same, the same name.
type names struct {
	known map[string]string
	count map[string]int
}

func newNames() *names { return &names{known: map[string]string{}, count: map[string]int{}} }

func (n *names) clone() *names { return &names{maps.Clone(n.known), maps.Clone(n.count)} }

func (n *names) of(kind, value string) string {
	if name, ok := n.known[kind+value]; ok {
		return name
	}
	n.count[kind]++
	name := fmt.Sprintf("%s-%d", kind, n.count[kind])
	n.known[kind+value] = name
	return name
}

var (
	uids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// An object within a message.
	embedded = regexp.MustCompile(`"\{(?:[^"\\]|\\.)*\}"`)
	ages     = regexp.MustCompile(`^\d+s$`)
	// As structured-merge-diff says it of an object that is converted.
	undeclared = regexp.MustCompile(`(?s)^(|failed .*?: )(?:errors:\n  )?\..*: field not declared in schema$`)
	times      = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	versions   = regexp.MustCompile(`(?i)(resource ?version in [a-z ]+: |StorageError[^,]*, Code: \d+, Key: [^,]*, ResourceVersion: )\d+`)
)

// normal replaces identities, times and the order of managedFields, which depends on times.
func (n *names) normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) { // so that names are given in the same order
			value := v[key]
			switch s, isText := value.(string); {
			case key == "metadata" && (v["items"] != nil || v["rows"] != nil):
				out[key] = n.ofList(value)
			case key == "resourceVersion" && isText:
				out[key] = n.of("version", s)
			case slices.Contains([]string{"creationTimestamp", "deletionTimestamp", "time"}, key) && isText:
				out[key] = "a time"
			case key == "rows" && v["columnDefinitions"] != nil:
				out[key] = n.normal(ageless(v))
			case key == "managedFields":
				out[key] = sorted(n.normal(value), manager)
			case key == "causes":
				out[key] = sorted(n.normal(value), func(v any) string { return text(v) })
			case key == "message" && v["details"] != nil && isText:
				// Causes are in the order of a map; all of them are in the details.
				out[key], _, _ = strings.Cut(n.normal(s).(string), "[")
			case key == "message" && isText && strings.HasPrefix(s, "failed to create typed patch object"):
				// structured-merge-diff walks a map, and ends at the first field that is not declared.
				out[key], _, _ = strings.Cut(s, "): ")
			case key == "message" && isText && undeclared.MatchString(s):
				out[key] = undeclared.ReplaceAllString(s, "${1}fields") // the same, of a converted object
			default:
				out[key] = n.normal(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = n.normal(e)
		}
		return out
	case string:
		v = embedded.ReplaceAllStringFunc(v, n.ofObject)
		v = uids.ReplaceAllStringFunc(v, func(uid string) string { return n.of("uid", uid) })
		v = times.ReplaceAllString(v, "a time")
		return versions.ReplaceAllString(v, "${1}N")
	}
	return v
}

// ofObject applies normal to the object in a quoted JSON text. It returns other texts as they are.
func (n *names) ofObject(quoted string) string {
	var object map[string]any
	if unquoted, err := strconv.Unquote(quoted); err != nil || json.Unmarshal([]byte(unquoted), &object) != nil {
		return quoted
	}
	return text(n.normal(object))
}

// ofList replaces the version of a list. It is the server's, which writes of others change: it must
// not count among the versions of objects.
func (n *names) ofList(metadata any) any {
	of, _ := metadata.(map[string]any)
	out := maps.Clone(of)
	for _, key := range []string{"resourceVersion", "continue"} {
		if out[key] != nil && out[key] != "" {
			out[key] = "of a list"
		}
	}
	return out
}

// ageless returns the rows of a table with the same age in each cell that has one.
func ageless(table map[string]any) any {
	columns, _ := table["columnDefinitions"].([]any)
	rows, _ := table["rows"].([]any)
	for _, row := range rows {
		row, _ := row.(map[string]any)
		cells, _ := row["cells"].([]any)
		for i, cell := range cells {
			column, _ := columns[i].(map[string]any)
			if text, ok := cell.(string); ok && column["type"] == "date" && ages.MatchString(text) {
				cells[i] = "an age"
			}
		}
	}
	return rows
}

func sorted(v any, key func(any) string) any {
	all, ok := v.([]any)
	if !ok {
		return v
	}
	slices.SortStableFunc(all, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	return all
}

func manager(v any) string {
	m, _ := v.(map[string]any)
	return fmt.Sprint(m["manager"], m["operation"], m["apiVersion"], m["subresource"])
}

func text(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(b)
}
