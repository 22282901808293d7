"""Foundations without any knowledge of translation: settings, options, files, progress, devices."""
