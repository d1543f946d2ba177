package schema

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// Table returns what the server answers when objects are asked for as a Table, as kubectl
// get does: the name, then the additionalPrinterColumns, and the age if there are none.
// kubectl shows the columns of priority 0, and the others with -o wide. The objects are as
// they are read in this version ([Version.Read]), and do not change; a row has its object
// whole.
//
// A column without a value, or with one of another type, has nil. One of type date has the time
// since then, so the table depends on the time
// (apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go).
func (v *Version) Table(objects ...map[string]any) *metav1.Table {
	v.mustExist()
	columns := v.spec.AdditionalPrinterColumns
	if len(columns) == 0 {
		// serveDefaultColumnsIfEmpty of apiextensions-apiserver/pkg/apiserver/helpers.go
		columns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	// After an error, the server goes on with the columns before it.
	convertor, _ := tableconvertor.New(columns)
	list := &unstructured.UnstructuredList{}
	for _, object := range objects {
		list.Items = append(list.Items, unstructured.Unstructured{Object: object})
	}
	table, _ := convertor.ConvertToTable(context.Background(), list, nil)
	table.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"}
	return table
}

// SelectableFields returns what a field selector can ask of an object: metadata.name, and
// metadata.namespace if the kind has namespaces, and the selectableFields of the version,
// by their paths without the leading dot. One without a value is empty. The object is as it
// is read in this version. The error is of a path that leads to several values
// (customresource/strategy.go, selectableFields).
func (v *Version) SelectableFields(object map[string]any) (map[string]string, error) {
	if err := v.unknown(); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	set := map[string]string{"metadata.name": u.GetName()}
	if v.namespaced() {
		set["metadata.namespace"] = u.GetNamespace()
	}
	for _, f := range v.spec.SelectableFields {
		path := jsonpath.New("").AllowMissingKeys(true)
		if err := path.Parse("{" + f.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("schema: the selectable field %s: %w", f.JSONPath, err)
		}
		results, err := path.FindResults(object)
		switch {
		case err != nil:
			return nil, fmt.Errorf("schema: the selectable field %s: %w", f.JSONPath, err)
		case len(results) > 1 || len(results) == 1 && len(results[0]) > 1:
			return nil, fmt.Errorf("schema: the selectable field %s leads to several values", f.JSONPath)
		}
		name := strings.TrimPrefix(f.JSONPath, ".")
		set[name] = ""
		if len(results) == 1 && len(results[0]) == 1 {
			if value := results[0][0].Interface(); value != nil {
				set[name] = fmt.Sprint(value)
			}
		}
	}
	return set, nil
}
