"""The handlers of the kinds of jobs: thin functions that run a workflow in a job's context."""
