"""Workflows behind the pages that explore samples."""
