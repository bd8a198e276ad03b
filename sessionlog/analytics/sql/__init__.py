"""Questions of a person's own, in SQL: the views, and how a question is put without changing anything."""
