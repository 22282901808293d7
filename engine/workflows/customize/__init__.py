"""The main job: samples to a plugin bundle."""
