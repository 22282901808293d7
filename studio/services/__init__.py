"""The services behind pages and the REST interface; independent of Gradio and FastAPI."""
