package controlplane

import (
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig file for cfg, which Config or User returned,
// and returns its path, for kubectl --kubeconfig or the environment variable
// KUBECONFIG. The file is in Dir and goes away with it. The error is that of
// writing it.
func (cp *ControlPlane) Kubeconfig(cfg *rest.Config) (string, error) {
	return WriteKubeconfig(cp.dir, cfg)
}

// WriteKubeconfig writes a kubeconfig file for cfg into the folder dir, and returns its path. Of
// cfg, it has the address, the CA, the client certificate and the user to impersonate.
func WriteKubeconfig(dir string, cfg *rest.Config) (string, error) {
	f, err := os.CreateTemp(dir, "kubeconfig-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	const name = "controlplane"
	return f.Name(), clientcmd.WriteToFile(api.Config{
		Clusters: map[string]*api.Cluster{name: {
			Server:                   cfg.Host,
			CertificateAuthorityData: cfg.CAData,
		}},
		AuthInfos: map[string]*api.AuthInfo{name: {
			ClientCertificateData: cfg.CertData,
			ClientKeyData:         cfg.KeyData,
			Impersonate:           cfg.Impersonate.UserName,
			ImpersonateGroups:     cfg.Impersonate.Groups,
		}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, f.Name())
}
