package differential

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
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
	// Made says where it is from, if it was made by a generator: old objects may be
	// refused then, and their requests are left out.
	Made string `json:"-"`
}

// Case is one request, or one after another has made an old object.
type Case struct {
	Name string
	// Version of the request; the storage version if it is empty.
	Version string
	// Object is what is sent; apiVersion, kind and metadata.name are filled in where
	// they are missing, and metadata.resourceVersion in an update.
	Object map[string]any
	// Raw is sent instead, if it is there: NAME, GROUP, and in an update
	// RESOURCEVERSION are replaced in it.
	Raw string
	// Old makes the request an update of this object, which is created first, in the
	// version OldVersion or the storage version.
	Old        map[string]any
	OldVersion string
	// Status makes it an update by way of the status subresource.
	Status bool
	// Read makes it a read of Old, in each version.
	Read bool
	// ReadBack reads what has been written, in each version.
	ReadBack bool
	// Sends are the ways in which it is sent: in each mode of field validation, if there are
	// none.
	Sends []Send
	// Want, if it is there, is a part of the message, of a cause or of a warning that
	// there has to be with field validation Strict; "accepted" is that the request
	// succeeds. It keeps a case from agreeing about something else than it is about.
	Want string
}

// Send is a way to send a request.
type Send struct {
	FieldValidation string // "" is the server's default
}

func (s Send) String() string {
	return cmp.Or(s.FieldValidation, "default")
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
