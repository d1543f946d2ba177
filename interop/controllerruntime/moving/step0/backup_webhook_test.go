package step0

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1"
	"github.com/crdkit/crdkit/interop/controllerruntime/moving/api/v1beta1"
)

var _ = Describe("Backup webhooks", func() {
	It("convert, default and validate", func() {
		meta := metav1.ObjectMeta{Namespace: "default", Name: "nightly"}
		beta := &v1beta1.Backup{ObjectMeta: meta, Spec: v1beta1.BackupSpec{Target: "shop/db"}}
		Expect(k8sClient.Create(ctx, beta)).To(Succeed())
		var backup v1.Backup
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(beta), &backup)).To(Succeed())
		Expect(backup.Spec).To(Equal(v1.BackupSpec{Bucket: "shop", Path: "db", Keep: 7}))

		backup.Spec.Keep = 400
		Expect(k8sClient.Update(ctx, &backup)).To(MatchError(ContainSubstring("a year is enough")))
		backup.Spec.Bucket = "a/b"
		Expect(k8sClient.Update(ctx, &backup)).To(MatchError(ContainSubstring("spec.bucket in body should match")))
	})
})
