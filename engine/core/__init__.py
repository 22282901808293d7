"""What knows nothing of translation: settings, options, files, progress, devices."""
