"""How assets are made: base models and parsers. Nothing else imports it but their commands."""
