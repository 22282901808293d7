"""Access to the studio: by session, by token or as the local user, and what each of them may reach."""
