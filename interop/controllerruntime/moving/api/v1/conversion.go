package v1

// Hub makes the version the hub of controller-runtime's conversion.
func (*Backup) Hub() {}
