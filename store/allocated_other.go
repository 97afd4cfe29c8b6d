//go:build !unix

package store

import "io/fs"

func allocated(info fs.FileInfo) int64 { return info.Size() }
