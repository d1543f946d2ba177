package schema

import (
	"bytes"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// Table returns what the server answers when objects are asked for as a Table, as kubectl
// get does: the name, then the additionalPrinterColumns, and the age if there are none.
// kubectl shows the columns of priority 0, and the others with -o wide. The objects are as
// they are read in this version ([Version.Read]), and do not change; a row has its object
// whole.
//
// A column without a value, or with one of another type, has nil. One of type date says how
// long ago that was, so the table depends on the time
// (apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go).
func (v *Version) Table(objects ...map[string]any) *metav1.Table {
	v.mustExist()
	columns := v.spec.AdditionalPrinterColumns
	if len(columns) == 0 {
		// serveDefaultColumnsIfEmpty of apis/apiextensions/helpers.go
		columns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"},
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		},
		Rows: make([]metav1.TableRow, 0, len(objects)),
	}
	var paths []*jsonpath.JSONPath
	for _, column := range columns {
		path, err := parsePath(column.JSONPath)
		if err != nil {
			// The server serves no columns from here on, as New does: it returns what there is.
			break
		}
		paths = append(paths, path)
		description := column.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + column.JSONPath
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: column.Name, Type: column.Type, Format: column.Format, Description: description, Priority: column.Priority,
		})
	}
	for _, object := range objects {
		u := &unstructured.Unstructured{Object: object}
		cells := []any{u.GetName()}
		for i, path := range paths {
			cells = append(cells, cell(columns[i].Type, path, object))
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: u}})
	}
	return table
}

// parsePath parses the path of a column or a selectable field.
func parsePath(path string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New("").AllowMissingKeys(true)
	return p, p.Parse("{" + path + "}")
}

// cell is the value of a column: ConvertToTable and cellForJSONValue of
// tableconvertor.go.
func cell(kind string, path *jsonpath.JSONPath, object map[string]any) any {
	results, err := path.FindResults(object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	switch kind {
	case "string":
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return text.String()
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		text, ok := value.(string)
		if !ok {
			return nil
		}
		var at metav1.Time
		if at.UnmarshalQueryParameter(text) != nil {
			return "<invalid>"
		}
		return metatable.ConvertToHumanReadableDateType(at)
	}
	return nil
}
