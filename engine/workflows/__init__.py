"""The long-running operations as plain functions: a request, a workspace and a progress in, a result out."""
