"""The studio: what people see. Pages read rows and files; work is done by jobs of the engine."""
