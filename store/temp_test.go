package store

import "os"

func makeTemp() (string, error) { return os.MkdirTemp("", "store") }
func removeTemp(dir string)     { os.RemoveAll(dir) }
