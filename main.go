// Millrace is one static program that does for Kafka what Kafka Streams does for the JVM; a job is one YAML file.
package main

import (
	"os"

	"millrace/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}
