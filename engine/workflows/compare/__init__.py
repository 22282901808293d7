"""Comparing translations of the base alone and with plugins: made line by line, measured, looked into, and written to files.

sentences -> translations by each system -> difference, scores -> figures with intervals and p -> XLSX, TMX, HTML, JSON
"""
