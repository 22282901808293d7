"""Translation of units with tags and placeholders: mask, translate, assemble."""
