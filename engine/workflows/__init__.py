"""The program's long works as plain functions: a request, a workspace and a progress in, a result out."""
