"""Comparing translations by the base alone and by plugins: made line by line, scored, inspected, and exported.

sentences -> translations by each system -> difference, scores -> figures with intervals and p -> XLSX, TMX, HTML, JSON
"""
