// Package config reads a job: its YAML files, the environment and the flags. It is the only importer of viper, which
// sees the settings only; `topology:` and `tests:` are decoded strictly from the YAML nodes, since their order, the case of their
// keys and their places matter. Everything that is wrong is returned at once, each finding with file, line and column.
// It checks forms; what a topology means is checked by package topology.
package config
