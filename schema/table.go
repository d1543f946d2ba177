package schema

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
