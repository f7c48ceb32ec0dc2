package page

import "net/http"

// Setting is a setting of the server that is in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as the config file has it; of a password that it is not shown
	From  string `json:"from"`  // default, file, environment or flag
}

// serveSettings tells which settings are in force.
func (p *Page) serveSettings(w http.ResponseWriter, _ *http.Request, _ visitor) {
	all := []Setting{}
	if p.config.Settings != nil {
		all = p.config.Settings()
	}
	answer(w, http.StatusOK, map[string][]Setting{"settings": all})
}
