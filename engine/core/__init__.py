"""Foundations that are independent of translation: settings, options, files, progress, devices."""
