"""The services behind pages and the REST interface; they know neither Gradio nor FastAPI."""
