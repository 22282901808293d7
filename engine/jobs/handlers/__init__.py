"""What each kind of job does: thin functions from a job's context to a workflow."""
