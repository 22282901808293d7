"""The building blocks of pages: functions from data to HTML or to Gradio components."""
