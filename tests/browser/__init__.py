"""The admin in a real browser: what only a browser can tell."""
