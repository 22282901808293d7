"""What pages are made of: functions from data to HTML or to Gradio components."""
