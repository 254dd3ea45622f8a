package report

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// peers returns the modules whose versions are published, with their names in tables.
func peers() map[string]string {
	return map[string]string{
		"github.com/alibaba/sentinel-golang": "sentinel-golang",
		"github.com/cep21/circuit/v4":        "cep21/circuit",
		"github.com/failsafe-go/failsafe-go": "failsafe-go",
		"github.com/gaissmai/bart":           "gaissmai/bart",
		"github.com/gin-gonic/gin":           "gin",
		"github.com/go-chi/httprate":         "go-chi/httprate",
		"github.com/go-kratos/aegis":         "kratos aegis",
		"github.com/go-kratos/kratos/v2":     "kratos",
		"github.com/gofiber/fiber/v3":        "fiber",
		"github.com/labstack/echo/v5":        "echo",
		"github.com/sony/gobreaker/v2":       "sony/gobreaker",
		"github.com/throttled/throttled/v2":  "throttled",
		"github.com/ulule/limiter/v3":        "ulule/limiter",
		"go.uber.org/ratelimit":              "uber ratelimit",
		"github.com/zeromicro/go-zero":       "go-zero",
		"golang.org/x/sync":                  "x/sync",
		"golang.org/x/time":                  "x/time",
		"google.golang.org/grpc":             "grpc",
	}
}

// Environment returns one line about where the figures of this process come from: the
// machine, the versions, the date and the command.
func Environment(command string) string {
	return Machine(command) + ", beside " + strings.Join(versions(), ", ") + "."
}

// Machine returns the same without the versions of other libraries and without the full stop
// at the end, for figures of Penstock alone.
func Machine(command string) string {
	return fmt.Sprintf("Measured on %s with `%s` on %s, %d cores, %s/%s, %s",
		time.Now().Format(time.DateOnly), command,
		processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// Command returns the command line of this program as one would type it in the
// folder of the module.
func Command() string {
	return strings.Join(append([]string{"go run ./cmd/" + filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
}

// versions returns the peers with their versions. It reads them from go.mod in the
// working directory, since test binaries have no build information about modules.
func versions() (list []string) {
	module, _ := os.ReadFile("go.mod")
	names := peers()
	for line := range strings.Lines(string(module)) {
		if fields := strings.Fields(line); len(fields) >= 2 && names[fields[0]] != "" {
			list = append(list, names[fields[0]]+" "+fields[1])
		}
	}
	return list
}

// processor returns the model of the processor if the system knows it, otherwise its
// architecture.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, found := strings.Cut(string(info), "model name")
	if !found {
		return runtime.GOARCH
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, "\t :")
}
