// Gin shows a gin service whose routes are guarded: one middleware, resources
// named by method and route. It calls itself and prints the answers.
//
//	go run ./examples/gin
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
)

func main() {
	err := penstock.Load(penstock.Rules{Flow: []penstock.FlowRule{
		{Name: "read-order", Resource: "GET:/orders/:id", Limit: 3},
	}})
	if err != nil {
		log.Fatal(err)
	}
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(gin.Recovery(), penstockgin.Middleware(nil, penstockgin.Options{}))
	router.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "order %s", c.Param("id")) })

	server := httptest.NewServer(router) // on loopback; a service would call router.Run
	defer server.Close()
	for order := range 5 {
		if err := get(fmt.Sprintf("%s/orders/%d", server.URL, order)); err != nil {
			log.Fatal(err) //nolint:gocritic // the server ends with the process
		}
	}
}

func get(url string) error {
	response, err := http.Get(url) //nolint:gosec,noctx // of the server above
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Println(response.Status, response.Header.Get("RateLimit"), response.Header.Get("RateLimit-Policy"))
	return nil
}
