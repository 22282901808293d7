"""Loaded models shared by callers: model cache, batcher, translation of tagged units."""
