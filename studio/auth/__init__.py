"""The studio's door: who comes in, by a session, by a token or as the one person on this machine, and what each may reach."""
