"""The limits: what a hand-written loop on a database driver does, with fence and attempt row."""
