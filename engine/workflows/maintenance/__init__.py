"""Maintenance of an installation: finding and repairing problems, making and restoring backups."""
