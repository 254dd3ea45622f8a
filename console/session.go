package console

import (
	"net/http"
	"path"
)

// cookie is the name of the cookie in which a browser keeps the token of somebody who has signed in.
const cookie = "penstock_console"

// identify says who sends a request. A token that a browser keeps is shown to [Options.Authorize] as that
// of a program.
func (h *handler) identify(r *http.Request) (Identity, Role) {
	kept, err := r.Cookie(cookie)
	if err != nil || kept.Value == "" || r.Header.Get("Authorization") != "" {
		return h.Authorize(r)
	}
	return h.Authorize(withToken(r, kept.Value))
}

func withToken(r *http.Request, token string) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// session signs somebody in, by a token, or out, without one.
func (h *handler) session(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		fail(w, http.StatusMethodNotAllowed, "only POST is answered")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<12)
	body, err := decode[struct {
		Token string `json:"token"`
	}](request{Request: r})
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	kept := &http.Cookie{ //nolint:gosec // browsers keep no secure cookie of a page without TLS, such as one on loopback
		Name: cookie, Value: body.Token, Path: path.Dir(r.URL.Path), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	}
	if body.Token == "" {
		kept.MaxAge = -1
		http.SetCookie(w, kept)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if _, role := h.Authorize(withToken(r, body.Token)); role < Viewer || kept.Valid() != nil {
		fail(w, http.StatusUnauthorized, "this token is not known")
		return
	}
	http.SetCookie(w, kept)
	w.WriteHeader(http.StatusNoContent)
}
