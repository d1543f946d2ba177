package apiservertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"

	"github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// installDiscovery serves /api and /apis, which kube-apiserver has from its aggregator.
func installDiscovery(server *genericapiserver.GenericAPIServer, addresses discovery.Addresses) {
	legacy := server.AggregatedLegacyDiscoveryGroupManager
	api := discovery.NewLegacyRootAPIHandler(addresses, extensions.Codecs, genericapiserver.DefaultLegacyAPIPrefix)
	wrapped := aggregated.WrapAggregatedDiscoveryToHandler(api, legacy, legacy)
	server.Handler.GoRestfulContainer.Add(wrapped.GenerateWebService("/api", metav1.APIVersions{}))

	groups := server.AggregatedDiscoveryGroupManager
	wrapped = aggregated.WrapAggregatedDiscoveryToHandler(groupList{groups}, groups, groups)
	server.Handler.GoRestfulContainer.Add(wrapped.GenerateWebService("/apis", metav1.APIGroupList{}))
}

// newGroupService serves a built-in group at /apis/<group>.
func newGroupService(gv schema.GroupVersion) *restful.WebService {
	version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	group := metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	return discovery.NewAPIGroupHandler(extensions.Codecs, group).WebService()
}

// groupList answers clients that do not know aggregated discovery.
type groupList struct{ groups aggregated.ResourceManager }

func (l groupList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := httptest.NewRecorder()
	in := r.Clone(r.Context())
	in.Header = http.Header{"Accept": {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}}
	l.groups.ServeHTTP(all, in)
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(all.Body.Bytes(), &groups); err != nil {
		responsewriters.InternalError(w, r, err)
		return
	}
	list := &metav1.APIGroupList{}
	for _, g := range groups.Items {
		group := metav1.APIGroup{Name: g.Name}
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Version})
		}
		group.PreferredVersion = group.Versions[0]
		list.Groups = append(list.Groups, group)
	}
	responsewriters.WriteObjectNegotiated(extensions.Codecs, negotiation.DefaultEndpointRestrictions, schema.GroupVersion{}, w, r, http.StatusOK, list, false)
}
