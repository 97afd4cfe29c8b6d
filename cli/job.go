package cli

import (
	"slices"

	"millrace/config"
	"millrace/topology"
)

// loadOptions says where the flags want the job to come from.
func (a *app) loadOptions() config.LoadOptions {
	opts := config.LoadOptions{Files: a.files, Sets: a.sets}
	if a.logLevel != "" {
		opts.Sets = append(slices.Clone(opts.Sets), "log.level="+a.logLevel)
	}
	return opts
}

// inspect loads the job and returns all that is to say about it. The job is nil when a file could not be used.
func (a *app) inspect() (*config.Config, []topology.Finding) {
	job, list := config.Load(a.loadOptions())
	if job == nil {
		return nil, list
	}
	return job, combine(list, a.check(job.Spec))
}

// combine joins the findings about the form with those about the meaning. Where a place is wrong in form, what it seems to mean is no
// news: the second error about one place is left out.
func combine(form, meaning []topology.Finding) []topology.Finding {
	broken := make(map[topology.Pos]bool)
	for _, f := range form {
		if f.Severity == topology.Error && f.Pos.Line > 0 {
			broken[f.Pos] = true
		}
	}
	all := slices.Clone(form)
	for _, f := range meaning {
		if f.Severity != topology.Error || !broken[f.Pos] {
			all = append(all, f)
		}
	}
	return all
}

// loadJob loads the job for a command that goes on with it. Findings go to standard error; the error says how to
// end when one of them forbids going on, and needs no further words.
func (a *app) loadJob() (*config.Config, error) {
	job, list := a.inspect()
	if err := config.Render(a.stderr, list, config.Text); err != nil {
		return nil, err
	}
	if code := exitCode(list, false); code != exitGood {
		return nil, &exitError{code: code}
	}
	return job, nil
}

// exitCode returns the code that findings end a command with.
func exitCode(list []topology.Finding, denyWarnings bool) int {
	code := exitGood
	for _, f := range list {
		switch {
		case config.Unreadable(f):
			return exitUsage
		case f.Severity == topology.Error, f.Severity == topology.Warning && denyWarnings:
			code = exitFindings
		}
	}
	return code
}
