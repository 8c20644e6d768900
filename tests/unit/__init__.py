"""The foundation without a database."""
