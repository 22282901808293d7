"""What pages and the REST interface ask for; nothing here knows Gradio or FastAPI."""
