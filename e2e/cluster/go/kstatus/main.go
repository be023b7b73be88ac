// kstatus reads the objects of a YAML stream from stdin, and prints a line for each: `<kind>/<name> <status>`. Documents
// without a kind are skipped.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		object := unstructured.Unstructured{}
		// Integers must be int64: a plain decoder returns float64.
		if err := json.Unmarshal(raw.Raw, &object.Object); err != nil {
			return err
		}
		if object.GetKind() == "" {
			continue
		}
		result, err := status.Compute(&object)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s/%s %s\n", object.GetKind(), object.GetName(), result.Status)
	}
}
