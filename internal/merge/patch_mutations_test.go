package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/crdkit/crdkit/test/expect"
)

// elementTypes are the elements of lists that operators have in their types.
var elementTypes = []reflect.Type{
	reflect.TypeFor[corev1.Container](),
	reflect.TypeFor[corev1.EnvVar](),
	reflect.TypeFor[corev1.ContainerPort](),
	reflect.TypeFor[corev1.VolumeMount](),
	reflect.TypeFor[corev1.Volume](),
	reflect.TypeFor[corev1.Toleration](),
	reflect.TypeFor[corev1.TopologySpreadConstraint](),
	reflect.TypeFor[corev1.ServicePort](),
	reflect.TypeFor[corev1.NodeSelectorTerm](),
	reflect.TypeFor[networkingv1.IngressRule](),
	reflect.TypeFor[networkingv1.HTTPIngressPath](),
	reflect.TypeFor[networkingv1.NetworkPolicyIngressRule](),
	reflect.TypeFor[rbacv1.PolicyRule](),
	reflect.TypeFor[autoscalingv2.MetricSpec](),
	reflect.TypeFor[endpoint](),
	reflect.TypeFor[relabeling](),
	reflect.TypeFor[alertRule](),
	reflect.TypeFor[listener](),
	reflect.TypeFor[disk](),
	reflect.TypeFor[nodePool](),
}

// endpoint, relabeling and alertRule are like those of prometheus-operator, listener is like that
// of Gateway API.
type (
	endpoint struct {
		Port        string       `json:"port,omitempty"`
		Path        string       `json:"path,omitempty"`
		Scheme      string       `json:"scheme,omitempty"`
		Interval    string       `json:"interval,omitempty"`
		HonorLabels bool         `json:"honorLabels,omitempty"`
		Relabelings []relabeling `json:"relabelings,omitempty"`
	}
	relabeling struct {
		SourceLabels []string `json:"sourceLabels,omitempty"`
		TargetLabel  string   `json:"targetLabel,omitempty"`
		Regex        string   `json:"regex,omitempty"`
		Replacement  *string  `json:"replacement,omitempty"`
		Action       string   `json:"action,omitempty"`
	}
	alertRule struct {
		Alert  string            `json:"alert"`
		Expr   string            `json:"expr"`
		For    string            `json:"for,omitempty"`
		Labels map[string]string `json:"labels,omitempty"`
	}
	listener struct {
		Name     string `json:"name"`
		Hostname string `json:"hostname,omitempty"`
		Port     int32  `json:"port"`
		Protocol string `json:"protocol"`
	}
	disk struct {
		Path string `json:"path"`
		Type string `json:"type,omitempty"`
		Size string `json:"size,omitempty"`
	}
	nodePool struct {
		Name        string              `json:"name"`
		Replicas    int32               `json:"replicas"`
		MachineType string              `json:"machineType"`
		Zones       []string            `json:"zones,omitempty"`
		Labels      map[string]string   `json:"labels,omitempty"`
		Taints      []corev1.Toleration `json:"taints,omitempty"`
	}
)

// mutations draws lists as a user writes them, and edits of them as a webhook makes them.
type mutations struct {
	*rand.Rand
	failer
	template map[string]any // what the elements of a list have in common, or nil
}

// list draws a list of at least two elements. Those of every fourth list have much in common.
func (m *mutations) list(t reflect.Type) (l []origin) {
	m.template = nil
	if m.IntN(4) == 0 {
		m.template = m.element(t)
	}
	for i := range 2 + m.IntN(5) {
		o := m.fresh(t, l)
		o.from = i
		l = append(l, o)
	}
	return l
}

// element draws an element of a type, as JSON. It has at least three values.
func (m mutations) element(t reflect.Type) map[string]any {
	for {
		v, _ := m.value(t, "", 0).(map[string]any)
		if text := encode(v, false); bytes.Count(text, []byte(":"))+bytes.Count(text, []byte(`",`)) > 2 {
			return v
		}
	}
}

// value draws a value of a type; nil if it draws none.
func (m mutations) value(t reflect.Type, name string, depth int) any {
	switch t.Kind() {
	case reflect.Pointer:
		return m.value(t.Elem(), name, depth)
	case reflect.Slice:
		var l []any
		for range 1 + m.IntN(2) {
			if v := m.value(t.Elem(), name, depth+1); v != nil {
				l = append(l, v)
			}
		}
		if l == nil {
			return nil
		}
		return l
	case reflect.Map:
		v := map[string]any{}
		for range 1 + m.IntN(2) {
			v[m.text("label")] = m.scalar(reflect.String, name)
		}
		return v
	case reflect.Struct:
		switch t.Name() {
		case "Quantity", "Duration", "Time":
			return m.scalar(reflect.String, name)
		case "IntOrString":
			return m.scalar(reflect.Int32, name)
		case "FieldsV1", "RawExtension", "ObjectMeta":
			return nil
		}
		v := map[string]any{}
		m.fields(t, v, depth)
		if len(v) == 0 {
			return nil
		}
		return v
	default:
		return m.scalar(t.Kind(), name)
	}
}

// fields draws all required fields, and a few of the optional ones.
func (m mutations) fields(t reflect.Type, v map[string]any, depth int) {
	var optional []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			m.fields(f.Type, v, depth)
		case strings.Contains(options, "omitempty"):
			optional = append(optional, f)
		default:
			if value := m.value(f.Type, name, depth+1); value != nil {
				v[name] = value
			}
		}
	}
	m.Shuffle(len(optional), func(i, j int) { optional[i], optional[j] = optional[j], optional[i] })
	most := 4
	if depth > 0 {
		most = 2
	}
	if depth > 2 {
		return
	}
	for _, f := range optional[:min(len(optional), m.IntN(most+1))] {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if value := m.value(f.Type, name, depth+1); value != nil {
			v[name] = value
		}
	}
}

// scalar draws a value that is not zero.
func (m mutations) scalar(kind reflect.Kind, name string) any {
	switch kind {
	case reflect.Bool:
		return true
	case reflect.String:
		return m.text(name)
	default:
		numbers := []int{1, 3, 10, 30, 80, 443, 8080}
		return json.Number(fmt.Sprint(numbers[m.IntN(len(numbers))]))
	}
}

// text draws a string for a field of that name: hardly ever the same name, often the same type.
func (m mutations) text(name string) string {
	n := values(name)
	return fmt.Sprint(name, "-", string(rune('a'+m.IntN(n)%26)), m.IntN(n)/26)
}

// values returns how many values a string of that name has.
func values(name string) int {
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, "name") || lower == "host" || lower == "alert" || lower == "expr" || lower == "key":
		return 40
	case strings.HasSuffix(lower, "path") || lower == "value" || lower == "regex" || lower == "image":
		return 8
	case strings.HasSuffix(lower, "type") || lower == "protocol" || lower == "operator" || lower == "effect" ||
		lower == "action" || lower == "scheme" || strings.HasSuffix(lower, "policy"):
		return 3
	}
	return 4
}

// origin is an element of the list after a mutation, and its index before, or none.
type origin struct {
	value map[string]any
	from  int
}

// edit changes, adds or removes one value in an element.
func (m mutations) edit(t reflect.Type, o origin) origin {
	was := encode(o.value, false)
	for {
		v, _ := decode(m.failer, was).(map[string]any)
		switch m.IntN(6) {
		case 0: // a field that was not there, or in place of what was there
			fresh := m.element(t)
			name := m.pick(fresh)
			v[name] = fresh[name]
		case 1: // a field less
			if len(v) > 1 {
				delete(v, m.pick(v))
			}
		default:
			m.leaf("", v)
		}
		if !bytes.Equal(encode(v, false), was) {
			return origin{v, o.from}
		}
	}
}

func (m mutations) pick(v map[string]any) string {
	names := slices.Sorted(maps.Keys(v))
	return names[m.IntN(len(names))]
}

// leaf returns a value with another scalar somewhere in it.
func (m mutations) leaf(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			name := m.pick(v)
			v[name] = m.leaf(name, v[name])
		}
		return v
	case []any:
		i := m.IntN(len(v))
		v[i] = m.leaf(name, v[i])
		return v
	case string:
		return m.text(name)
	case json.Number:
		return m.scalar(reflect.Int, name)
	default:
		return v
	}
}

// mutationKinds are what a mutation does to a list of at least two elements.
var mutationKinds = map[string]func(m mutations, t reflect.Type, l []origin) []origin{
	"edit one": func(m mutations, t reflect.Type, l []origin) []origin { return m.editSome(t, l, 1) },
	"edit two": func(m mutations, t reflect.Type, l []origin) []origin { return m.editSome(t, l, 2) },
	"default all": func(m mutations, t reflect.Type, l []origin) []origin {
		return m.setAll(t, l)
	},
	"default all, insert first": func(m mutations, t reflect.Type, l []origin) []origin {
		return m.setAll(t, slices.Insert(l, 0, m.fresh(t, l)))
	},
	"default three, insert first": func(m mutations, t reflect.Type, l []origin) []origin {
		return m.setAll(t, m.setAll(t, m.setAll(t, slices.Insert(l, 0, m.fresh(t, l)))))
	},
	"delete one": func(m mutations, t reflect.Type, l []origin) []origin { return m.deleteOne(l) },
	"append one": func(m mutations, t reflect.Type, l []origin) []origin { return append(l, m.fresh(t, l)) },
	"insert first": func(m mutations, t reflect.Type, l []origin) []origin {
		return slices.Insert(l, 0, m.fresh(t, l))
	},
	"delete one, append one": func(m mutations, t reflect.Type, l []origin) []origin {
		fresh := m.fresh(t, l)
		return append(m.deleteOne(l), fresh)
	},
	"replace one": func(m mutations, t reflect.Type, l []origin) []origin {
		l[m.IntN(len(l))] = m.fresh(t, l)
		return l
	},
	"edit one, delete another": func(m mutations, t reflect.Type, l []origin) []origin {
		return m.deleteOne(m.editSome(t, l, 1))
	},
	"edit one, append one": func(m mutations, t reflect.Type, l []origin) []origin {
		return append(m.editSome(t, l, 1), m.fresh(t, l))
	},
	"edit one, insert first": func(m mutations, t reflect.Type, l []origin) []origin {
		return slices.Insert(m.editSome(t, l, 1), 0, m.fresh(t, l))
	},
	"move one": func(m mutations, t reflect.Type, l []origin) []origin { return m.moveOne(l) },
	"edit one, move one": func(m mutations, t reflect.Type, l []origin) []origin {
		return m.moveOne(m.editSome(t, l, 1))
	},
	"swap two": func(m mutations, t reflect.Type, l []origin) []origin {
		i, j := m.IntN(len(l)), m.IntN(len(l))
		l[i], l[j] = l[j], l[i]
		return l
	},
	"reverse": func(m mutations, t reflect.Type, l []origin) []origin { slices.Reverse(l); return l },
	"sort": func(m mutations, t reflect.Type, l []origin) []origin {
		slices.SortFunc(l, func(a, b origin) int { return bytes.Compare(encode(a.value, false), encode(b.value, false)) })
		return l
	},
}

func (m mutations) editSome(t reflect.Type, l []origin, n int) []origin {
	for _, i := range m.Perm(len(l))[:n] {
		l[i] = m.edit(t, l[i])
	}
	return l
}

func (m mutations) deleteOne(l []origin) []origin {
	i := m.IntN(len(l))
	return slices.Delete(l, i, i+1)
}

func (m mutations) moveOne(l []origin) []origin {
	i, j := m.IntN(len(l)), m.IntN(len(l))
	o := l[i]
	return slices.Insert(slices.Delete(l, i, i+1), j, o)
}

// fresh draws an element that is not in the list.
func (m mutations) fresh(t reflect.Type, l []origin) origin {
	for {
		v := m.element(t)
		for _, name := range slices.Sorted(maps.Keys(m.template)) {
			if values(name) < 8 && m.IntN(10) < 7 {
				v[name] = m.template[name]
			}
		}
		if !slices.ContainsFunc(l, func(o origin) bool { return reflect.DeepEqual(o.value, v) }) {
			return origin{v, none}
		}
	}
}

// setAll sets a field that some elements lack to the same value in all of these.
func (m mutations) setAll(t reflect.Type, l []origin) []origin {
	fresh := m.element(t)
	name := m.pick(fresh)
	for i, o := range l {
		if o.value[name] == nil {
			v := maps.Clone(o.value)
			v[name] = fresh[name]
			l[i] = origin{v, o.from}
		}
	}
	return l
}

// verdict counts the lists of which all unknown fields were kept, some were lost, or some are on a
// wrong element.
type verdict struct{ kept, lost, wrong int }

func (v verdict) all() int { return v.kept + v.lost + v.wrong }

func (v verdict) percent(n int) float64 { return 100 * float64(n) / float64(v.all()) }

func (v verdict) String() string {
	return fmt.Sprintf("kept %5.1f %%, lost %5.1f %%, wrong %5.1f %% of %d", v.percent(v.kept), v.percent(v.lost), v.percent(v.wrong), v.all())
}

// TestPatch_Mutations measures how often the unknown fields of a list without declared keys are
// kept. A field on the wrong element is worse than a lost one.
func TestPatch_Mutations(t *testing.T) {
	const runs = 12 // of each kind of mutation for each type
	m := mutations{Rand: rand.New(rand.NewPCG(1, 3)), failer: t}
	var total verdict
	kinds, types := map[string]verdict{}, map[string]verdict{}
	for _, elementType := range elementTypes {
		for _, kind := range slices.Sorted(maps.Keys(mutationKinds)) {
			for range runs {
				list := m.list(elementType)
				before, raw := []any{}, []any{}
				for i, o := range list {
					before = append(before, o.value)
					full := maps.Clone(o.value)
					full["unknown/"] = json.Number(fmt.Sprint(i))
					raw = append(raw, full)
				}
				after := []any{}
				mutated := mutationKinds[kind](m, elementType, slices.Clone(list))
				for _, o := range mutated {
					after = append(after, o.value)
				}
				object := func(l []any) []byte { return encode(map[string]any{"list": l}, false) }
				rawText := object(raw)
				_, merged, err := Patch(rawText, object(before), object(after), nil, false, true)
				expect.NoError(t, err)
				if merged == nil {
					merged = rawText
				}
				lost, wrong := false, false
				for j, e := range decode(t, merged).(map[string]any)["list"].([]any) {
					switch got := e.(map[string]any)["unknown/"]; {
					case got == nil:
						lost = lost || mutated[j].from != none
					case fmt.Sprint(got) != fmt.Sprint(mutated[j].from):
						wrong = true
					}
				}
				note := func(v *verdict) {
					switch {
					case wrong:
						v.wrong++
					case lost:
						v.lost++
					default:
						v.kept++
					}
				}
				k, ty := kinds[kind], types[elementType.Name()]
				note(&k)
				note(&ty)
				note(&total)
				kinds[kind], types[elementType.Name()] = k, ty
			}
		}
	}
	for _, of := range []map[string]verdict{kinds, types} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			t.Logf("%-25s %s", name, of[name])
		}
	}
	t.Logf("%-25s %s", "all", total)
	if total.percent(total.kept) < 95 || total.percent(total.wrong) > 1 {
		t.Errorf("%s: want at least 95 %% kept, and at most 1 %% wrong", total)
	}
}
