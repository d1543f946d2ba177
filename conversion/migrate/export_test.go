package migrate

import "time"

// DelegatePatience is how long a migration of the API may wait for a controller.
func (c *Controller) DelegatePatience(d time.Duration) {
	for _, m := range c.migrators {
		m.delegatePatience = d
	}
}
