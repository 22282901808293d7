"""Looking after an installation: finding and mending what is not as it should be, backups, and their return."""
