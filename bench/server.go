// The endpoint with Go's standard library: the same checks, documents kept as ready bytes.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

type document struct {
	body []byte
	tag  string
}

func main() {
	runtime.GOMAXPROCS(1)
	raw, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	var parsed map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parsed); err != nil {
		panic(err)
	}
	documents := map[string]document{}
	for address, body := range parsed {
		var head struct{ DocumentIncarnation int }
		if err := json.Unmarshal(body, &head); err != nil {
			panic(err)
		}
		documents[address] = document{body, `"` + strconv.Itoa(head.DocumentIncarnation) + `"`}
	}
	http.HandleFunc("/metadata/scheduledevents", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		found, known := documents[host]
		switch {
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Metadata") != "true":
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Query().Get("api-version") != "2020-07-01":
			w.WriteHeader(http.StatusBadRequest)
		case !known:
			w.WriteHeader(http.StatusForbidden)
		default:
			id := make([]byte, 16)
			_, _ = rand.Read(id)
			header := w.Header()
			header.Set("Content-Type", "application/json; charset=utf-8")
			header.Set("Server", "IMDS/150.870.65.1854")
			header.Set("ETag", found.tag)
			header.Set("x-ms-request-id", hex.EncodeToString(id))
			_, _ = w.Write(found.body)
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
